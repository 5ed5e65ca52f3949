"""A training that hangs in one of several ways, unchanged by gpuwarden. Its argument says how."""
import os
import sys
import time

import torch
import torch.distributed as dist

HOW = sys.argv[1]
AT = 40
IS_MANY = "RANK" in os.environ
if IS_MANY:
    dist.init_process_group("gloo")
RANK = dist.get_rank() if IS_MANY else 0


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        time.sleep(0.02)
        if HOW == "data" and RANK == 1 and index == AT:
            time.sleep(1000)
        return torch.randn(10)


def write_everything():
    time.sleep(1000)


model = torch.nn.Linear(10, 10)
if IS_MANY:
    model = torch.nn.parallel.DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
for step, batch in enumerate(torch.utils.data.DataLoader(Data(), num_workers=1 if HOW == "data" else 0)):
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if step == AT and HOW == "collective":
        if RANK == 1:
            time.sleep(1000)
        dist.barrier()
    if step == AT and HOW == "alone":
        write_everything()
