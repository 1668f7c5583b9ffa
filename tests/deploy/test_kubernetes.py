"""The Kustomize base of deploy/kubernetes matches the program; `nox -s kubernetes` holds it against the schemas of
Kubernetes' versions."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cambist.frontends.cli.main import COMMANDS
from cambist.frontends.settings.settings import for_many_processes
from cambist.frontends.settings.sources import load
from tests.deploy.test_deploy import DRAIN
from tests.distributions import ROOT

BASE = ROOT / "deploy" / "kubernetes"
KUSTOMIZATION: dict[str, Any] = yaml.safe_load((BASE / "kustomization.yaml").read_text("utf-8"))
OBJECTS: list[dict[str, Any]] = [
    each for name in KUSTOMIZATION["resources"] for each in yaml.safe_load_all((BASE / name).read_text("utf-8"))
]
SETTINGS = dict(
    line.split("=", 1) for line in (BASE / "settings.env").read_text("utf-8").splitlines() if not line.startswith("#")
)
SECRETS = "/run/secrets/cambist"


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in OBJECTS if each["kind"] == kind}


def templates() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and template of all pods."""
    for each in OBJECTS:
        spec = each["spec"]
        template = spec.get("template") or spec.get("jobTemplate", {}).get("spec", {}).get("template")
        if template is not None:
            yield each["metadata"]["name"], template


PODS = dict(templates())


def selected(selector: dict[str, str]) -> set[str]:
    """Names of the pods that have these labels."""
    return {name for name, pod in PODS.items() if selector.items() <= pod["metadata"]["labels"].items()}


def test_every_file_is_a_resource_of_the_base() -> None:
    files = {path.name for path in BASE.iterdir()}
    assert files == {*KUSTOMIZATION["resources"], "kustomization.yaml", "settings.env"}
    assert len({(each["kind"], each["metadata"]["name"]) for each in OBJECTS}) == len(OBJECTS)


def test_pods_run_commands_that_exist_from_the_image_of_this_version() -> None:
    commands = {name: pod["spec"]["containers"][0]["args"] for name, pod in PODS.items()}
    assert commands == {
        "cambist-migrate": ["migrate"],
        "cambist-api": ["api"],
        "cambist-worker": ["worker"],
        "cambist-verify": ["ledger", "verify"],
    }
    assert {each[0] for each in commands.values()} <= set(COMMANDS)
    [image] = KUSTOMIZATION["images"]
    assert {pod["spec"]["containers"][0]["image"] for pod in PODS.values()} == {image["name"]}
    version = re.findall(r"^ +image: cambist:(.+)$", (ROOT / "deploy/compose.yaml").read_text("utf-8"), re.MULTILINE)
    assert version == [image["newTag"]]


def test_settings_suit_several_processes_with_the_secrets_of_the_script(tmp_path: Path) -> None:
    """As `cambist api` judges them. Each pod mounts the secrets at the place that the settings name."""
    subprocess.run(["sh", ROOT / "deploy/make-secrets.sh", tmp_path / "secrets"], check=True, capture_output=True)
    environ = {name: value.replace(SECRETS, f"{tmp_path}/secrets") for name, value in SETTINGS.items()}
    loaded = load(environ, {}, tmp_path)
    assert loaded.warnings == ()
    settings = for_many_processes(loaded.settings)
    for name, pod in PODS.items():
        spec = pod["spec"]
        [container] = spec["containers"]
        assert container["envFrom"] == [{"configMapRef": {"name": "cambist-settings"}}], name
        assert {each["mountPath"]: each["name"] for each in container["volumeMounts"]} == {
            SECRETS: "secrets", "/var/lib/cambist": "data", "/tmp": "tmp",
        }, name  # fmt: skip
        volumes = {each["name"]: each for each in spec["volumes"]}
        assert volumes["secrets"]["secret"] == {"secretName": "cambist-secrets", "defaultMode": 0o440}
        assert volumes["data"]["persistentVolumeClaim"]["claimName"] in of_kind("PersistentVolumeClaim")
        if spec.get("terminationGracePeriodSeconds"):
            assert spec["terminationGracePeriodSeconds"] >= settings.shutdown_seconds + DRAIN
    assert settings.lame_duck_seconds <= settings.shutdown_seconds / 2


def test_no_secret_stands_in_the_base() -> None:
    assert of_kind("Secret") == {}
    for path in BASE.iterdir():
        assert not re.search(r"postgresql://|redis://|[0-9a-f]{32}", path.read_text("utf-8")), path.name


def test_containers_hold_no_right_that_they_do_not_need_in_kubernetes() -> None:
    """The rules of the pod security standard "restricted", and a root file system that is only read."""
    for name, pod in PODS.items():
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False, name
        assert spec["securityContext"]["runAsNonRoot"] is True, name
        assert spec["securityContext"]["runAsUser"] == 10001, name
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert spec["containers"][0]["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }, name  # fmt: skip


def test_selectors_find_their_pods_and_ports() -> None:
    for kind in ("Deployment", "PodDisruptionBudget"):
        for name, each in of_kind(kind).items():
            assert selected(each["spec"]["selector"]["matchLabels"]) == {name}
    [service] = of_kind("Service").values()
    assert selected(service["spec"]["selector"]) == {"cambist-api"}
    [port] = PODS["cambist-api"]["spec"]["containers"][0]["ports"]
    assert [each["targetPort"] for each in service["spec"]["ports"]] == [port["name"]]
    assert f"CAMBIST_PORT={port['containerPort']}" in (ROOT / "deploy/Dockerfile").read_text("utf-8")
    policies = of_kind("NetworkPolicy")
    assert selected(policies["cambist"]["spec"]["podSelector"]["matchLabels"]) == set(PODS), "none is reached"
    assert "ingress" not in policies["cambist"]["spec"]
    assert selected(policies["cambist-api"]["spec"]["podSelector"]["matchLabels"]) == {"cambist-api"}


def test_an_update_keeps_an_api_process_and_probes_ask_what_they_should() -> None:
    for name, deployment in of_kind("Deployment").items():
        assert deployment["spec"]["replicas"] >= 2, name
        assert of_kind("PodDisruptionBudget")[name]["spec"]["minAvailable"] == 1
    api = of_kind("Deployment")["cambist-api"]["spec"]
    assert api["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    [container] = api["template"]["spec"]["containers"]
    probes = {kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    assert probes == {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
    # A lame duck is seen before it stops to listen.
    readiness = container["readinessProbe"]
    assert readiness["periodSeconds"] * readiness["failureThreshold"] < int(SETTINGS["CAMBIST_LAME_DUCK_SECONDS"])


def test_kustomize_renders_the_base() -> None:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("no kubectl is installed")
    done = subprocess.run([program, "kustomize", BASE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rendered = list(yaml.safe_load_all(done.stdout))
    kinds = sorted(each["kind"] for each in rendered)
    assert kinds == sorted([*(each["kind"] for each in OBJECTS), "ConfigMap"])
    [settings] = [each for each in rendered if each["kind"] == "ConfigMap"]
    assert settings["data"] == SETTINGS
    [api] = [each for each in rendered if each["metadata"]["name"] == "cambist-api" and each["kind"] == "Deployment"]
    [container] = api["spec"]["template"]["spec"]["containers"]
    assert container["image"] == f"cambist:{KUSTOMIZATION['images'][0]['newTag']}"
    assert container["envFrom"] == [{"configMapRef": {"name": settings["metadata"]["name"]}}]
