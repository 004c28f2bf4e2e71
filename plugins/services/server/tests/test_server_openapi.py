"""The OpenAPI document, from which clients and security tests are generated."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from mleredux._core.plugins import Catalogue
from mleredux_server.app import create_app, make_service
from mleredux_server.settings import Settings


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = Path(tmp_path_factory.mktemp("openapi"))
    found: dict[str, Any] = create_app(make_service(Settings(runs_dir=folder / "runs"), Catalogue())).openapi()
    return found


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(method, path, one) for path, of in document["paths"].items() for method, one in of.items()]


@pytest.fixture(scope="module")
def specification() -> Any:
    """The validator of OpenAPI; importing it takes a second, which not every worker that collects this needs."""
    from openapi_spec_validator import OpenAPIV31SpecValidator

    return OpenAPIV31SpecValidator


def test_the_document_is_valid(document: dict[str, Any], specification: Any) -> None:
    errors = [f"{error.json_path}: {error.message}" for error in specification(document).iter_errors()]
    assert document["openapi"].startswith("3.1.")
    assert errors == []
    operation = document["paths"]["/v1/runs"]["get"]
    broken = document | {"paths": {"/v1/runs": {"get": operation | {"responses": {"200": {}}}}}}
    assert [error.message for error in specification(broken).iter_errors()]


def test_all_routes_but_those_of_health_need_a_token(document: dict[str, Any]) -> None:
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    open_ones = {path for _, path, operation in operations(document) if not operation.get("security")}
    assert open_ones == {"/healthz", "/readyz", "/metrics", "/v1"}


def test_all_routes_may_return_a_problem_and_no_other_error_format(document: dict[str, Any]) -> None:
    for _, path, operation in operations(document):
        assert "application/problem+json" in operation["responses"]["default"]["content"], path
    assert "HTTPValidationError" not in json.dumps(document)


def test_operations_have_unique_names_and_a_description(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]
    assert len(set(names)) == len(names)
    for name, (_, path, operation) in zip(names, operations(document), strict=True):
        assert "v1" not in name, path
        assert operation["description"].endswith((".", "`")), path


def test_operations_appear_once_in_the_docs_page_grouped_by_tag(document: dict[str, Any]) -> None:
    places = {(method, path): operation.get("tags", []) for method, path, operation in operations(document)}
    assert {place: tags for place, tags in places.items() if len(tags) != 1} == {}
    assert places["post", "/v1/experiments/{experiment_id}/cancel"] == ["experiments"]


def test_all_references_resolve(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    for name in {part.partition('"')[0] for part in text.split('"#/components/schemas/')[1:]}:
        assert name in document["components"]["schemas"], name


def test_the_docs_page_loads_nothing_from_other_hosts(tmp_path: Path) -> None:
    client = TestClient(create_app(make_service(Settings(runs_dir=tmp_path / "runs"), Catalogue())))
    page = client.get("/docs").text
    assert "openapi.json" in page
    assert not re.findall(r"(?:src|href)=\"https?:", page)
    for path in re.findall(r"(?:src|href)=\"([^\"]+)\"", page):
        assert client.get(path).status_code == 200, path
