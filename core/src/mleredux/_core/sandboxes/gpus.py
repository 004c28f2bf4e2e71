"""The environment variables by which programs find the GPUs of their slot."""

from __future__ import annotations

from collections.abc import Sequence


def gpu_environment(ids: Sequence[str], *, assigned: bool = False) -> dict[str, str]:
    """Return the variables of CUDA, NVIDIA's container runtime, ROCm and HIP; without GPU ids, they hide all GPUs.

    Args:
        ids: The devices of the slot: device numbers on this machine, or UUIDs.
        assigned: Whether the agent sees only these devices, as in a container, where numbers start at 0.
    """
    if not ids:
        hidden = dict.fromkeys(("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"), "-1")
        return {**hidden, "NVIDIA_VISIBLE_DEVICES": "void"}
    seen = ",".join(str(place) if assigned and device.isdigit() else device for place, device in enumerate(ids))
    return {
        "NVIDIA_VISIBLE_DEVICES": ",".join(ids),  # else NVIDIA's older hook adds all that an image wants
        "CUDA_VISIBLE_DEVICES": seen,
        "ROCR_VISIBLE_DEVICES": seen,
        "HIP_VISIBLE_DEVICES": ",".join(str(place) for place in range(len(ids))),  # among the devices that ROCm shows
    }
