"""Lightning with gpuwarden's callback. Needs lightning (or pytorch_lightning) and torch:

    python examples/lightning_example.py [--epochs 3]
"""
from __future__ import annotations

import argparse
import tempfile

import torch
from torch import nn

try:
    import lightning.pytorch as pl
except ImportError:
    import pytorch_lightning as pl

from gpuwarden import GPUMonitor
from gpuwarden.lightning import GPUWardenCallback


class Regression(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 1))

    def training_step(self, batch, batch_idx):
        inputs, targets = batch
        loss = nn.functional.mse_loss(self.net(inputs), targets)
        self.log("train_mse", loss)
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=4096)
    arguments = parser.parse_args()
    inputs = torch.randn(arguments.samples, 32)
    data = torch.utils.data.TensorDataset(inputs, inputs.sum(dim=1, keepdim=True))
    loader = torch.utils.data.DataLoader(data, batch_size=64, num_workers=2, persistent_workers=True)
    callback = GPUWardenCallback(GPUMonitor(gpu_index=0), run_name="lightning-example")
    trainer = pl.Trainer(
        max_epochs=arguments.epochs,
        callbacks=[callback],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        default_root_dir=tempfile.mkdtemp(),
    )
    trainer.fit(Regression(), loader)
    print("steps:", callback.run.statistics() if callback.run else None)


if __name__ == "__main__":
    main()
