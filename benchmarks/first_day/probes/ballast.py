"""Fill the memory of a GPU, so that an ordinary case does not fit. It is freed when the server of probes ends."""

from typing import Any

HELD: list[Any] = []


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Allocate all but ``free`` bytes of the GPU; return how many are free afterwards."""
    import torch

    available, total = torch.cuda.mem_get_info()
    HELD.append(torch.empty(max(0, available - request["free"]), dtype=torch.uint8, device="cuda"))
    torch.cuda.synchronize()
    return {"free": torch.cuda.mem_get_info()[0], "total": total}
