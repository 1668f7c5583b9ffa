"""The OpenAPI document, read by two generators of clients: `nox -s generated_clients`, or `python -m
tests.generated_clients`. They lose nothing of it: no warning, every operation, every component, every recorded answer.
"""

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cambist.frontends.http.openapi.openapi import openapi_document

BASE = "https://pay.example"


def run(*command: str) -> None:
    """Run a generator. Raises: SystemExit when it fails, or says a word of warning."""
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
    said = done.stdout + done.stderr
    if done.returncode or "warn" in said.lower() or "error" in said.lower():
        raise SystemExit(f"{command[0]}: {said}")


def answers(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every example of an answer that is one component, with the component's name."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for response in operation["responses"].values():
                content = response["content"]["application/json"]
                component = content["schema"].get("$ref", "").rpartition("/")[2]
                if component and "example" in content:
                    yield component, content["example"]
                for each in content.get("examples", {}).values():
                    yield component, document["components"]["examples"][each["$ref"].rpartition("/")[2]]["value"]


def main() -> None:
    """Generate both, and read every answer by both. Raises: SystemExit."""
    document = openapi_document(BASE)
    names = {each["operationId"] for methods in document["paths"].values() for each in methods.values()}
    with TemporaryDirectory() as folder:
        source = Path(folder, "openapi.json")
        source.write_text(json.dumps(document))
        sys.path.insert(0, folder)
        client = ["--path", str(source), "--output-path", f"{folder}/client", "--meta", "none", "--fail-on-warning"]
        run("openapi_python_client", "generate", *client)
        called = {path.stem for path in Path(folder, "client", "api").glob("*/*.py")} - {"__init__"}
        assert called == names, called ^ names
        options = ["--input-file-type", "openapi", "--output-model-type", "pydantic_v2.BaseModel"]
        options += ["--formatters", "builtin", "--output", f"{folder}/models.py"]
        run("datamodel_code_generator", "--input", str(source), *options)
        attributes, pydantic = importlib.import_module("client.models"), importlib.import_module("models")
        # A component whose name a field's values took is numbered.
        structs = {re.sub(r"\d+$", "", name) for name in vars(pydantic)}
        lost = [each for each in document["components"]["schemas"] if each not in structs & {*vars(attributes)}]
        assert lost == [], lost
        told = [*answers(document)]
        for name, answer in told:
            read = getattr(attributes, name).from_dict(answer).to_dict()
            assert read == answer, (name, read, answer)
            model = getattr(pydantic, name)
            model = model if hasattr(model, "model_validate") else getattr(pydantic, f"{name}1")
            model.model_validate(answer)
    print(f"{len(names)} operations, {len(document['components']['schemas'])} components, {len(told)} answers")


if __name__ == "__main__":
    main()
