"""The manifests for Kubernetes are valid by its own schemas and KubeRay's, which know every field."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from mleredux_executor_ray.executor import ADDRESS_VARIABLE
from mleredux_server.api import health
from mleredux_server.cli.serve import command as serve
from mleredux_support.imports import lazily
from mleredux_testing.pytest_plugin import skip_or_fail
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

jsonschema = lazily("jsonschema")

FOLDER = Path(__file__).parents[1] / "examples" / "clusters" / "kubernetes"
KUBERAY = json.loads(Path(__file__).with_name("kuberay-1.7.0.json").read_text())
"""KubeRay's own schemas by kind, for all but pods, which Kubernetes's schemas check; see its `$comment`."""


@pytest.fixture(scope="module")
def schemas() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folders = sorted((cache / "mleredux-validators" / "kubernetes_validate").glob("*/*-strict"))
    if not folders:
        skip_or_fail("validators", "there are no schemas of Kubernetes (`.ci/validators` gets them)")
    return folders[-1]


def manifests() -> list[dict[str, Any]]:
    return [one for path in FOLDER.glob("*.yaml") for one in yaml.safe_load_all(path.read_text())]


def problems(schemas: Path, kind: str, manifest: dict[str, Any]) -> list[str]:
    group = manifest["apiVersion"].rpartition("/")[0].partition(".")[0]
    schema = json.loads((schemas / f"{'-'.join(filter(None, (kind.lower(), group)))}-v1.json").read_text())
    definitions = json.loads((schemas / "_definitions.json").read_text())
    known = Registry().with_resource("/api/_definitions.json", Resource(definitions, DRAFT202012))
    found = jsonschema.Draft202012Validator(schema, registry=known).iter_errors(manifest)
    return [f"{list(error.path)}: {error.message}" for error in found]


def test_all_that_kubernetes_knows_is_valid(schemas: Path) -> None:
    found = {one["kind"]: one for one in manifests()}
    own = {"ServiceAccount", "PersistentVolumeClaim", "Deployment", "Service", "NetworkPolicy"}
    assert found.keys() == {*own, "RayCluster", "RayJob"}
    for kind in own:
        assert problems(schemas, kind, found[kind]) == []
        assert problems(schemas, kind, {**found[kind], "specs": {}}), "it refuses what it does not know"
    spec = found["RayCluster"]["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        pod = {"apiVersion": "v1", "kind": "Pod", **group["template"]}
        assert problems(schemas, "Pod", pod) == []
        pod["spec"]["volumess"] = []
        assert problems(schemas, "Pod", pod)


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob"])
def test_all_that_kuberay_knows_is_valid(kind: str) -> None:
    [found] = [one for one in manifests() if one["kind"] == kind]
    valid = jsonschema.Draft202012Validator(KUBERAY[kind]).is_valid
    assert found["apiVersion"] == "ray.io/v1" and valid(found)
    assert not valid({**found, "spec": {**found["spec"], "suspended": True}}), "it refuses what it does not know"
    assert not valid({**found, "spec": {**found["spec"], "suspend": "no"}})


def test_the_manifests_fit_together() -> None:
    found = {one["kind"]: one for one in manifests()}
    cluster = found["RayCluster"]
    assert found["RayJob"]["spec"]["clusterSelector"] == {"ray.io/cluster": cluster["metadata"]["name"]}
    image = (FOLDER / "Dockerfile").read_text()
    assert f"FROM rayproject/ray:{cluster['spec']['rayVersion']}-" in image
    for group in (cluster["spec"]["headGroupSpec"], *cluster["spec"]["workerGroupSpecs"]):
        pod = group["template"]["spec"]
        assert pod["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]
        [claim] = [one["persistentVolumeClaim"]["claimName"] for one in pod["volumes"]]
        assert claim == found["PersistentVolumeClaim"]["metadata"]["name"]


def test_the_server_fits_the_cluster_and_its_own_options() -> None:
    found = {one["kind"]: one for one in manifests()}
    pod = found["Deployment"]["spec"]["template"]
    [container] = pod["spec"]["containers"]
    program, name, *options = container["command"]
    asked = serve.make_context("serve", options).params
    assert (program, name) == ("mleredux", "serve") and asked["executor"] == "ray" and asked["host"] == "0.0.0.0"
    assert {"containerPort": asked["port"], "name": "http"} in container["ports"]
    head = found["RayCluster"]["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    assert container["image"] == head["image"]
    own, cluster = ({one["name"]: one.get("value") for one in many["env"]} for many in (container, head))
    assert cluster.items() <= own.items() and own[ADDRESS_VARIABLE].startswith(found["RayCluster"]["metadata"]["name"])
    probed = {container[f"{probe}Probe"]["httpGet"]["path"] for probe in ("startup", "liveness", "readiness")}
    assert probed <= {route.path for route in health.router.routes}
    labels = pod["metadata"]["labels"]
    assert labels == found["Deployment"]["spec"]["selector"]["matchLabels"] == found["Service"]["spec"]["selector"]
    [rule] = found["NetworkPolicy"]["spec"]["ingress"]
    assert labels in [one["podSelector"]["matchLabels"] for one in rule["from"]]
    claims = [one["persistentVolumeClaim"]["claimName"] for one in pod["spec"]["volumes"]]
    assert claims == [found["PersistentVolumeClaim"]["metadata"]["name"]]
    assert pod["spec"]["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]
