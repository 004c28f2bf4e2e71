"""The environment variables by which programs find the GPUs of their slot."""

from __future__ import annotations

from collections.abc import Sequence


def gpu_environment(ids: Sequence[str], *, assigned: bool = False) -> dict[str, str]:
    """Return the variables of CUDA, NVIDIA's container runtime, ROCm and HIP; without GPU ids, they hide all GPUs.

    Args:
        ids: The devices of the slot: device numbers on this machine, or UUIDs.
        assigned: Whether the agent sees only these devices, as in a container, where numbers start at 0.
    """
    seen = [str(place) if assigned and device.isdigit() else device for place, device in enumerate(ids)]
    names = ",".join(seen) or "-1"
    return {
        "NVIDIA_VISIBLE_DEVICES": ",".join(ids) or "void",  # else NVIDIA's older hook adds all that an image wants
        "CUDA_VISIBLE_DEVICES": names,
        "ROCR_VISIBLE_DEVICES": names,
        "HIP_VISIBLE_DEVICES": ",".join(map(str, range(len(ids)))) or "-1",  # among the devices that ROCm shows
    }
