"""Which kind of processor this is: two of one kind round sums alike."""

from pathlib import Path


def processor() -> str:
    """Vendor, family and model; empty where Linux does not say."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return ""
    fields = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return " ".join(fields[name] for name in ("vendor_id", "cpu family", "model") if name in fields)
