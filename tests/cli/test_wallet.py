"""`cambist wallet …`: an operator checks the addresses that clients will get, before money goes there
(docs/providers/chains.md "Addresses")."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from cambist.adapters.nodes.spelling import base58check, read_base58check
from cambist.core.domain.operators.audit import AuditEntry
from cambist.core.usecases.actions.audit import list_audit
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings
from cambist.ports.chain import Network
from tests.chains.harnesses import KEY, XPUB
from tests.chains.world import ChainWorld, chain_world
from tests.cli.conftest import Call

FIRST, SECOND = "TWer2Ygk5TEheHp3TPuYeqxmB6SsGZmaL6", "TPjjvMwjPoDC32V2dGDYTkLH4E5LAtBZ6C"
NODE = f"https://{KEY}@node.example/jsonrpc"


@pytest.fixture
def env(folder: Path) -> Mapping[str, str]:
    (folder / "xpub").write_text(f"{XPUB}\n")
    return {
        "CAMBIST_DEPOSITS": "tron",
        "CAMBIST_TRON_NODES": NODE,
        "CAMBIST_DEPOSIT_XPUB_TRON_FILE": str(folder / "xpub"),
    }


def test_the_first_addresses_are_the_wallets(call: Call, env: Mapping[str, str]) -> None:
    done = call("wallet", "check", FIRST, SECOND, "--json", env=env)
    assert done.status == 0
    assert [row["is_same"] for row in done.document["data"]] == [True, True]


def test_another_accounts_are_a_failure(call: Call, env: Mapping[str, str]) -> None:
    """Clients would pay to addresses that nobody can spend from."""
    done = call("wallet", "check", FIRST, "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t", env=env)
    assert done.status == 1
    assert done.out.count("ANOTHER") == 1
    assert done.out.count("the same") == 1


def test_wallet_check_shows_the_first_addresses(call: Call, env: Mapping[str, str]) -> None:
    done = call("wallet", "check", env=env)
    assert done.status == 0
    assert [line.split()[1] for line in done.out.splitlines() if " T" in line][:2] == [FIRST, SECOND]


def audited(settings: Settings) -> Sequence[AuditEntry]:
    async def read() -> Sequence[AuditEntry]:
        async with open_app(settings) as app:
            return await list_audit(app.ports, limit=10)

    return asyncio.run(read())


def test_a_restored_database_passes_over_what_it_forgot(call: Call, env: Mapping[str, str]) -> None:
    assert call("wallet", "skip", "3", "--reason", "restored", "--json", env=env).document == {"next_number": 3}
    rows = call("wallet", "addresses", "--most", "4", "--json", env=env).document["data"]
    assert [(row["number"], row["given_out"], row["received_usdt"]) for row in rows] == [
        (0, True, "0.00000000"),
        (1, True, "0.00000000"),
        (2, True, "0.00000000"),
        (3, False, "0.00000000"),
    ]
    [row] = audited(Settings())
    assert (row.action, row.object_id, row.reason) == ("wallet.skip", "3", "restored")


def test_commands_without_a_wallet_are_refused(call: Call) -> None:
    for command in (("check",), ("addresses",), ("skip", "3")):
        done = call("wallet", *command, "--json")
        assert (done.status, done.document["error"]["code"]) == (1, "PROVIDER_NOT_CONFIGURED")


@pytest.mark.parametrize("missing", ["CAMBIST_TRON_NODES", "CAMBIST_DEPOSIT_XPUB_TRON_FILE"])
def test_missing_setting_stops_the_start_and_is_named(call: Call, env: Mapping[str, str], missing: str) -> None:
    done = call("wallet", "check", env={name: value for name, value in env.items() if name != missing})
    assert done.status == 1
    assert f"set {missing.removesuffix('_FILE')}" in done.err


def test_neither_key_nor_xpub_is_shown(call: Call, env: Mapping[str, str]) -> None:
    told = call("config", "check", "--json", env=env).out + call("config", "check", env=env).out
    assert "tron_nodes" in told
    assert KEY not in told
    assert XPUB not in told


@pytest.mark.parametrize(
    "nodes", ["node.example", "http://", NODE + "," + NODE, "https://node.example\n,,x", "ftp://node.example", ","]
)
def test_invalid_list_of_nodes_is_refused_and_not_quoted(call: Call, env: Mapping[str, str], nodes: str) -> None:
    done = call("config", "check", env={**env, "CAMBIST_TRON_NODES": nodes})
    assert done.status == 1
    assert "CAMBIST_TRON_NODES: must be https:// addresses" in done.out + done.err
    assert KEY not in done.out + done.err


def test_a_private_key_is_refused_and_not_quoted(call: Call, env: Mapping[str, str], folder: Path) -> None:
    private = base58check(bytes.fromhex("0488ade4") + read_base58check(XPUB)[4:])
    (folder / "xpub").write_text(private)
    done = call("wallet", "check", env=env)
    assert done.status == 1
    assert "private key, which must not lie on a server" in done.err
    assert private not in done.out + done.err


def test_a_chain_without_nodes_stops_the_start(call: Call) -> None:
    done = call("account", "list", env={"CAMBIST_CHAIN": "nodes"})
    assert done.status == 1
    assert "set CAMBIST_TRON_NODES, CAMBIST_EVM_NODES, CAMBIST_BSC_NODES, or some" in done.err


class TestCheck:
    """`cambist provider check`, against a real node."""

    @pytest.fixture
    def world(self, tmp_path: Path) -> Iterator[ChainWorld]:
        with chain_world(tmp_path, [Network.TRON]) as made:
            yield made

    @pytest.fixture
    def env(self, world: ChainWorld, env: Mapping[str, str]) -> Mapping[str, str]:
        return {**env, "CAMBIST_TRON_NODES": world.nodes[Network.TRON].url}

    def test_nodes_of_the_network_are_taken(self, call: Call, env: Mapping[str, str]) -> None:
        done = call("provider", "check", "tron", "--json", env=env)
        assert (done.status, [row["credentials"] for row in done.document["data"]]) == (0, ["taken"])

    def test_one_of_another_network_is_refused(self, call: Call, env: Mapping[str, str]) -> None:
        """The node belongs to a test network, or is in the wrong variable."""
        wrong = {"CAMBIST_CHAIN": "nodes", "CAMBIST_BSC_NODES": env["CAMBIST_TRON_NODES"]}
        done = call("provider", "check", "chain", "--json", env=wrong)
        [row] = done.document["data"]
        assert (done.status, row["credentials"]) == (1, "refused")
        assert row["fault"] == "bsc node 1 is of chain 728126428: bsc is 56"
