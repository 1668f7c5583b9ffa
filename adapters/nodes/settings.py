"""Settings of the networks' nodes, which adapters share (docs/providers/chains.md "Nodes")."""

import re
from typing import Any

from ...ports.settings import setting


def read_nodes(raw: Any) -> tuple[str, ...]:
    """Read addresses of nodes, in the order of use. The adapter reports what is wrong with one."""
    texts = re.split(r"[\s,]+", raw.strip()) if isinstance(raw, str) else raw
    nodes = tuple(texts) if isinstance(texts, list) and all(isinstance(text, str) for text in texts) else ()
    if not nodes or len(set(nodes)) < len(nodes) or not all(map(_is_node, nodes)):
        raise ValueError("must be https:// addresses (http:// of this machine), each once, separated by commas")
    return nodes


def _is_node(text: str) -> bool:
    return text.isascii() and text.isprintable() and re.match(r"https?://[^/]", text) is not None


_MEANING = "addresses of {}, in order of use; a key stands before an @, or in the path"
TRON_NODES = setting(_MEANING.format("TRON nodes, each with its path /jsonrpc"), read_nodes, secret=True)
EVM_NODES = setting(_MEANING.format("Ethereum nodes"), read_nodes, secret=True)
BSC_NODES = setting(_MEANING.format("BNB Smart Chain nodes"), read_nodes, secret=True)
