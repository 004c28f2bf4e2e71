"""The user's entries that an agent sees, whatever its image has."""

from __future__ import annotations

from pathlib import Path

import pytest
from mleredux_containers import agent_user, user_entries

ROOT = "root:x:0:0:root:/root:/bin/sh"
IMAGES = {
    "an image without the file": None,
    "no entry": f"{ROOT}\n",
    "no line's end": f"# comment\n\n{ROOT}\n+::::::",
    "an entry of the same id": f"{ROOT}\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n",
    "an entry of the same name": f"{ROOT}\nagent:x:1000:1000::/home/agent:/bin/bash\n",
    "bytes that are no text": f"{ROOT}\nr\udce9my:x:1:1::/:/bin/sh\n",
}


@pytest.mark.parametrize("user", [(65532, 65532), (1000, 100), (0, 0)])
@pytest.mark.parametrize("image", IMAGES)
def test_the_first_entry_of_the_agents_id_and_name_is_ours(image: str, user: tuple[int, int], tmp_path: Path) -> None:
    content = IMAGES[image]
    (tmp_path / "layer/etc").mkdir(parents=True)
    if content is not None:
        (tmp_path / "layer/etc/passwd").write_text(content, errors="surrogateescape")
    passwd, group = user_entries([tmp_path / "none", tmp_path / "layer"], user, tmp_path)
    assert (passwd.target, group.target) == ("/etc/passwd", "/etc/group") and not passwd.writable
    lines = passwd.source.read_text().splitlines()
    fields = [line.split(":") for line in lines]
    by_id = next(found for found in fields if found[2:3] == [str(user[0])])
    by_name = next(found for found in fields if found[0] == "agent")
    assert by_id == by_name == ["agent", "x", *map(str, user), "agent", "/tmp", "/bin/sh"]
    assert ROOT in lines, "the image's own stay"
    assert group.source.read_text().startswith(f"agent:x:{user[1]}:\n")
    assert passwd.source.stat().st_mode & 0o777 == 0o644


def test_a_link_in_an_image_leads_to_no_file_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "layer/etc").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret:x:7:7::/:/bin/sh\n")
    (tmp_path / "layer/etc/passwd").symlink_to(tmp_path / "secret")
    passwd, _ = user_entries([tmp_path / "layer"], agent_user(), tmp_path)
    assert "secret" not in passwd.source.read_text()
