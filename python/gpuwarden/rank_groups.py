"""Which pipeline stage and tensor-parallel group this rank is in, as PyTorch's device mesh or Megatron says."""
from __future__ import annotations

import gc
import sys
from typing import Any, Dict

_PIPELINE = ("pp", "pipeline", "pipe")
_TENSOR = ("tp", "tensor", "model")


def read_groups() -> Dict[str, int]:
    """Empty: nobody says."""
    megatron = sys.modules.get("megatron.core.parallel_state")
    if megatron is not None and megatron.model_parallel_is_initialized():
        return {
            "pipeline_stage": megatron.get_pipeline_model_parallel_rank(),
            "tensor_rank": megatron.get_tensor_model_parallel_rank(),
            "tensor_group": megatron.get_tensor_model_parallel_src_rank(),
        }
    mesh_type = getattr(sys.modules.get("torch.distributed.device_mesh"), "DeviceMesh", None)
    if mesh_type is None:
        return {}
    meshes = [one for one in gc.get_objects() if type(one) is mesh_type and one.mesh_dim_names]
    found: Dict[str, int] = {}
    for mesh in sorted(meshes, key=lambda one: len(one.mesh_dim_names)):
        found.update(_of_mesh(mesh))
    return found


def _of_mesh(mesh: Any) -> Dict[str, int]:
    found: Dict[str, int] = {}
    for name in mesh.mesh_dim_names:
        if name in _PIPELINE:
            found["pipeline_stage"] = int(mesh.get_local_rank(name))
        elif name in _TENSOR:
            found["tensor_rank"] = int(mesh.get_local_rank(name))
            ranks = sys.modules["torch.distributed"].get_process_group_ranks(mesh.get_group(name))
            found["tensor_group"] = int(min(ranks))
    return found
