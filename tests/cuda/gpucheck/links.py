"""The links between host and device, and the device's memory, over sizes that no cache holds."""

from .plans import read

GB = 1e9


def links(context, size):
    told = read(context.commands.must(context.tools.planrun, "info", "--links", size, "--backend", "cuda", seconds=20))
    rates = {key.removesuffix("_bytes_per_second") + "_gb_per_s": round(rate / GB, 2)
             for key, rate in told.items() if key.endswith("_bytes_per_second")}
    context.row(f"over {size}", all(rate > 0 for rate in rates.values()), **rates)
