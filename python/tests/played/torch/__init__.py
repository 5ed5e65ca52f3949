"""A PyTorch that is played: what the hooks attach to, with numbers instead of tensors. Nothing here computes."""
import sys
import types


class Tensor:
    is_cuda = False

    def __init__(self, value=0.0, shape=(), dtype="torch.float32"):
        self.value, self.shape, self.dtype = value, shape, dtype

    def numel(self):
        count = 1
        for length in self.shape:
            count *= length
        return count

    def detach(self):
        return self

    def __float__(self):
        return float(self.value)

    def __add__(self, other):
        return Tensor(self.value + other.value)

    def __mul__(self, factor):
        return Tensor(self.value * factor)

    def backward(self):
        autograd.backward(self)


class Optimizer:
    pre, post = [], []

    def __init__(self, lr):
        self.param_groups = [{"lr": lr, "params": []}]

    def step(self, closure=None):
        args = (self,) if closure is None else (self, closure)
        for hook in self.pre:
            hook(self, args, {})
        if closure is not None:
            closure()
        for hook in self.post:
            hook(self, args, {})


class GradScaler:
    def __init__(self, factor=1024.0):
        self.factor = factor

    def scale(self, outputs):
        return outputs * self.factor

    def step(self, optimizer, is_finite=True):
        return optimizer.step() if is_finite else None


class _BaseDataLoaderIter:
    def __init__(self, loader):
        self._dataset = loader.dataset
        self._num_workers, self._pin_memory = 3, False
        self._batches = iter(loader.dataset)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._batches)


class DataLoader:
    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        return _BaseDataLoaderIter(self)


class no_grad:
    enabled = True

    def __enter__(self):
        no_grad.enabled = False

    def __exit__(self, *_):
        no_grad.enabled = True


def is_grad_enabled():
    return no_grad.enabled


def save(value, path):
    return path


def _module(name, **members):
    module = types.ModuleType("torch." + name)
    module.__dict__.update(members)
    sys.modules["torch." + name] = module
    parent, _, last = ("torch." + name).rpartition(".")
    setattr(sys.modules[parent], last, module)
    return module


def _clip_grad_norm_(parameters, max_norm):
    return Tensor(7.0)


autograd = _module("autograd", backward=lambda tensors, grad_tensors=None: None)
autograd.backward.__name__ = "backward"
_module("optim", Optimizer=Optimizer)
_module("optim.optimizer", register_optimizer_step_pre_hook=Optimizer.pre.append, register_optimizer_step_post_hook=Optimizer.post.append)
_module("nn")
_module("nn.utils", clip_grad_norm_=_clip_grad_norm_)
_module("nn.utils.clip_grad", clip_grad_norm_=_clip_grad_norm_)
_module("amp", GradScaler=GradScaler)
_module("cuda", is_initialized=lambda: False)
_module("cuda.amp", GradScaler=GradScaler)
_module("utils")
_module("utils.data", DataLoader=DataLoader)
_module("utils.data.dataloader", _BaseDataLoaderIter=_BaseDataLoaderIter)
_module("version", cuda=None, hip=None)
