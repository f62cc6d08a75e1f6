"""Sidecars in the released layout, for tests."""

from pathlib import Path

import yaml

TEMPLATE = "An activation of another model:\n\n<concept>{injection_char}</concept>\n\nExplain it."


def sidecar_row(
    *, d_model: int = 64, layer: int = 2, marker: str, marker_id: int, neighbours: tuple[int, int], **more: object
) -> dict[str, object]:
    """Keys and nesting as the authors' checkpoints have them, with what they hold beside what we read."""
    return {
        "kind": "nla_model",
        "d_model": d_model,
        "extraction": {"layer_index": layer, "injection_scale": 80.0, "mse_scale": 8.0},
        "tokens": {
            "injection_char": marker,
            "injection_token_id": marker_id,
            "injection_left_neighbor_id": neighbours[0],
            "injection_right_neighbor_id": neighbours[1],
        },
        "prompt_templates": {"av": TEMPLATE, "ar": "Summary: {explanation}"},
        **more,
    }


def write_sidecar(folder: Path, row: dict[str, object]) -> Path:
    """`nla_meta.yaml` with non-ASCII characters as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nla_meta.yaml").write_text(yaml.safe_dump(row, allow_unicode=True), encoding="utf-8")
    return folder
