"""Fooling the comparison: answers that are wrong and want to look right."""

from __future__ import annotations

from attack import Attack, in_softmax, in_total

_BODY = "def softmax(z, dim=-1):\n    return {}\n"


def _returns(name: str, expression: str, **more: float) -> Attack:
    return in_softmax(name, _BODY.format(expression), **more)


_FORBIDDEN = {
    "getattr": "getattr(torch, 'soft' + 'max')(z, dim)",
    "torch_ops": "torch.ops.aten.softmax(z, dim)",
    "the_private_op": "torch.ops.aten._softmax(z, dim, False)",
    "import_inside": "__import__('torch.nn.functional').nn.functional.softmax(z, dim)",
    "module": "torch.nn.Softmax(dim)(z)",
    "method": "torch.Tensor.softmax(z, dim)",
    "partial": "__import__('functools').partial(torch.special.softmax, z)(dim)",
    "vars": "vars(torch)['softmax'](z, dim)",
}

ATTACKS = [
    in_softmax(
        "always_equal_object",
        "class Yes:\n"
        "    def __eq__(self, other): return True\n"
        "    def __getattr__(self, name): return lambda *a, **k: self\n"
        "    def __bool__(self): return True\n"
        "    __hash__ = None\n"
        "def softmax(z, dim=-1):\n    return Yes()\n",
    ),
    in_softmax(
        "always_equal_tensor_subclass",
        "class Yes(torch.Tensor):\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        return torch.tensor(True)\n"
        "def softmax(z, dim=-1):\n    return torch.zeros(3, 5).as_subclass(Yes)\n",
    ),
    in_softmax(
        "tensor_subclass_with_every_dispatch",
        "class Yes(torch.Tensor):\n"
        "    @staticmethod\n"
        "    def __new__(cls): return torch.Tensor._make_wrapper_subclass(cls, (3, 5), "
        "dtype=torch.float64)\n"
        "    @classmethod\n"
        "    def __torch_dispatch__(cls, func, types, args=(), kwargs=None): return "
        "torch.tensor(True)\n"
        "def softmax(z, dim=-1):\n    return Yes()\n",
    ),
    _returns("nan_everywhere", "z * float('nan')"),
    _returns("infinities", "z.abs() / 0"),
    _returns(  # right but for the dtype: a slip, 35 % of four points
        "wrong_dtype",
        "torch.exp(z.float()) / torch.exp(z.float()).sum(dim, keepdim=True)",
        loses=1.4,
    ),
    _returns("complex_dtype", "z * 1j"),
    _returns("wrong_shape_that_broadcasts", "torch.ones(1, dtype=z.dtype)"),
    _returns("expanded_scalar", "torch.ones(1, dtype=z.dtype).expand(3, 10**9)"),
    _returns("all_zeros", "torch.zeros_like(z)"),
    _returns(
        "the_mean_inside_a_tolerance", "torch.full_like(z, 1 / z.shape[-1])", loses=2.0
    ),
    _returns("uninitialised_memory", "torch.empty_like(z)"),
    _returns("the_input_itself", "z"),
    _returns("inputs_changed_to_agree", "z.zero_().add_(1 / z.shape[-1])", loses=4.0),
    _returns(
        "a_list_of_lists",
        "(torch.exp(z) / torch.exp(z).sum(dim, keepdim=True)).tolist()",
    ),
    _returns("sparse_layout", "torch.sparse_coo_tensor([[0], [0]], [1.0], (3, 5))"),
    _returns("meta_device", "torch.empty(3, 5, dtype=z.dtype, device='meta')"),
    in_softmax(
        "right_on_the_first_call_only",
        "calls = []\n"
        "def softmax(z, dim=-1):\n"
        "    calls.append(1)\n"
        "    e = torch.exp(z)\n"
        "    return e / e.sum(dim, keepdim=True) if len(calls) == 1 else z\n",
        loses=2.0,
    ),
    in_softmax(
        "cached_by_shape",
        "cache = {}\n"
        "def softmax(z, dim=-1):\n"
        "    e = torch.exp(z)\n"
        "    return cache.setdefault(z.shape, e / e.sum(dim, keepdim=True))\n",
        loses=2.0,
    ),
    in_softmax(
        "cached_by_id",
        "cache = {}\ndef softmax(z, dim=-1):\n    return cache.setdefault(id(z) // 10**9, "
        "torch.zeros_like(z))\n",
    ),
    in_softmax(
        "right_for_the_visible_example",
        "def softmax(z, dim=-1):\n    return torch.full((2,), 0.5) if z.ndim == 1 else "
        "torch.zeros_like(z)\n",
    ),
    *(_returns(f"forbidden_by_{name}", call) for name, call in _FORBIDDEN.items()),
    in_softmax(
        "forbidden_by_alias",
        "wanted = torch.softmax\ndef softmax(z, dim=-1):\n    return wanted(z, dim)\n",
    ),
    in_softmax(
        "forbidden_and_swallowed",
        "def softmax(z, dim=-1):\n"
        "    try:\n        torch.softmax(z, dim)\n    except BaseException:\n        pass\n"
        "    e = torch.exp(z)\n    return e / e.sum(dim, keepdim=True)\n",
    ),
    in_total(
        "number_that_is_equal_to_all",
        "class N(int):\n    __eq__ = lambda a, b: True\n    __hash__ = int.__hash__\nreturn N(0)",
    ),
    in_total("text_for_a_number", "return str(sum(numbers))"),
    in_total("not_a_number", "return float('nan')"),
    in_total("true_for_one", "return True"),
    in_total("a_tensor_that_is_true", "return torch.tensor(True)"),
    Attack(
        "handle_that_compares_equal",
        {
            "meter": "class Yes:\n    def __eq__(self, other): return True\n    __hash__ = None\n"
            "class Meter:\n    def __init__(self, start): self.value = Yes()\n    def "
            "add(self, n): pass\n"
        },
        loses=2.0,
    ),
    Attack(
        "attribute_that_is_called",
        {
            "meter": "class Meter:\n    def __init__(self, start): self.value = lambda *a: 7\n    "
            "def add(self, n): pass\n"
        },
        loses=2.0,
    ),
]
