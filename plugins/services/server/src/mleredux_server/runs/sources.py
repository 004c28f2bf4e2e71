"""Uploaded agents: folders that are stored once by content, and that runs refer to as `upload:NAME@HASH`."""

from __future__ import annotations

import re
import threading

from mleredux.plugin.files import remove_tree
from sqlalchemy import func, select

from mleredux_server.accounts.accounts import note
from mleredux_server.accounts.security import Caller
from mleredux_server.database.tables import BuildRow, Job, RunRow, Source, now
from mleredux_server.files.packages import unpack
from mleredux_server.files.uploads import Upload
from mleredux_server.protocol.problems import Problem, not_found
from mleredux_server.runs.admission import check_disk
from mleredux_server.runs.creation import project_for
from mleredux_server.runs.uploaded import UPLOAD, read_reference, sources_dir
from mleredux_server.service import Service

_CHANGING = threading.Lock()


def store_source(service: Service, caller: Caller, upload: Upload) -> Source:
    """Unpack an uploaded folder, and add it to a project.

    Raises:
        Problem: The archive is refused, or the project's disk quota does not suffice.
    """
    name = re.sub(r"[^a-z0-9._-]+", "-", upload.fields.get("name", "").lower()).strip("-._")[:64] or "agent"
    scratch = upload.path.with_suffix(".tree")
    try:
        packed = unpack(upload.path, scratch, service.settings.max_agent_mb << 20)
        with _CHANGING, service.database.writing() as session:
            project = project_for(session, caller, upload.fields.get("project") or None)
            session.refresh(project, with_for_update=True)
            source = session.get(Source, (packed.digest, project.id))
            if source is None:
                check_disk(session, project, packed.size >> 20)
                source = Source(id=packed.digest, project_id=project.id, user_id=caller.user_id, name=name)
                source.size, source.files, source.created_at = packed.size, packed.files, now()
                session.add(source)
                note(session, caller, "source.upload", f"{project.id} {packed.digest}")
            place = sources_dir(service.settings) / packed.digest
            if not place.is_dir():  # this also restores an agent whose folder was lost
                place.parent.mkdir(exist_ok=True, mode=0o700)
                scratch.rename(place)
        return source
    finally:
        remove_tree(scratch)


def delete_source(service: Service, caller: Caller, source: Source) -> None:
    """Remove an uploaded agent from a project, and delete its files if no other project has it.

    Raises:
        Problem: A run or build that has not ended needs it.
    """
    aside = service.settings.state_dir / "trash" / f"source-{source.id}"
    with _CHANGING:
        with service.database.writing() as session:
            session.delete(session.get_one(Source, (source.id, source.project_id)))
            session.flush()
            left = session.scalar(select(func.count()).where(Source.id == source.id))
            for table in (RunRow, BuildRow):
                query = select(func.count()).select_from(table).join(Job, Job.id == table.id)
                query = query.where(table.agent.like(f"upload:%@{source.id}%"), Job.state != "ended")
                if session.scalar(query.where(table.project_id == source.project_id) if left else query):
                    hint = "Cancel them, or wait until they end."
                    raise Problem("conflict", "It is in use by runs or builds that have not ended.", hint=hint)
            note(session, caller, "source.delete", f"{source.project_id} {source.id}")
        if not left and (place := sources_dir(service.settings) / source.id).is_dir():
            remove_tree(aside)  # left by a kill
            aside.parent.mkdir(exist_ok=True)
            place.rename(aside)
    remove_tree(aside)


def check_source(service: Service, caller: Caller, reference: str) -> None:
    """Check that the caller may use an uploaded agent; other references are not checked.

    Raises:
        Problem: The caller can see no such agent, or it can't be sent to this server's nodes.
    """
    if not reference.startswith(UPLOAD):
        return
    if service.settings.store:
        hint = "Use an agent from a repository."
        raise Problem("forbidden", "This server's nodes can't run uploaded agents: they share no files.", hint=hint)
    digest = read_reference(reference)[1]
    with service.database.reading() as session:
        projects = set(session.scalars(select(Source.project_id).where(Source.id == digest)))
    if not any(caller.sees(project) for project in projects):
        raise not_found("uploaded agent", reference)
