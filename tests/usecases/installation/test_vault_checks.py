"""The database knows its pepper and keys; a process with others is refused (docs/operations.md "Key rotation")."""

import asyncio
import shutil
from pathlib import Path

import pytest

import cambist
from cambist.core.usecases.accounts.accounts import create_account
from cambist.frontends.app.compose import open_app
from cambist.frontends.settings.settings import Settings, VaultKeys
from cambist.ports.vault import VaultMisfit
from tests.servers import service_url

ONE, TWO, THREE = b"1" * 32, b"2" * 32, b"3" * 32
PEPPER, OTHER = b"p" * 32, b"q" * 32


def given(keys: dict[int, bytes], current: int, pepper: bytes = PEPPER) -> VaultKeys:
    return VaultKeys(keys=keys, current=current, pepper=pepper)


FIRST = given({1: ONE}, 1)


async def opens(url: str, keys: VaultKeys, *, account: bool = False, looking: bool = False) -> None:
    """Open the database with these keys, and create an account in it."""
    settings = Settings(database_url=url, vault=keys)
    async with open_app(settings, recognising=not looking) as app:
        if account:
            await create_account(app.ports, "Tea")


@pytest.fixture(params=["sqlite", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return service_url(request, request.param, tmp_path)


async def refused(url: str, keys: VaultKeys, *words: str, looking: bool = False) -> None:
    with pytest.raises(VaultMisfit) as caught:
        await opens(url, keys, looking=looking)
    for each in words:
        assert each in str(caught.value)
    for secret in (*keys.keys.values(), keys.pepper):
        assert secret.hex() not in str(caught.value)


async def test_wrong_pepper_is_refused_naming_its_setting(kept: str) -> None:
    await opens(kept, FIRST, account=True)
    await refused(kept, given({1: ONE}, 1, OTHER), "CAMBIST_VAULT_PEPPER has another pepper")
    await refused(kept, given({1: ONE}, 1, OTHER), "CAMBIST_VAULT_PEPPER", looking=True)
    await opens(kept, FIRST)


async def test_wrong_key_under_a_known_id_is_refused_naming_its_setting(kept: str) -> None:
    await opens(kept, FIRST, account=True)
    await refused(kept, given({1: TWO}, 1), "CAMBIST_VAULT_KEY has another key 1")
    await refused(kept, given({1: TWO, 2: THREE}, 2), "CAMBIST_VAULT_KEY has another key 1")
    await refused(kept, given({2: THREE}, 2), "none of the keys")


async def test_rotation_goes_step_by_step(kept: str) -> None:
    await opens(kept, FIRST, account=True)
    await opens(kept, given({1: ONE, 2: TWO}, 1))
    await opens(kept, given({1: ONE, 2: THREE}, 1))  # it has not sealed yet: a slip is mended by the right one
    await opens(kept, given({1: ONE, 2: TWO}, 2))
    await refused(kept, given({1: ONE, 2: THREE}, 2), "another key 2")
    await opens(kept, given({2: TWO}, 2))


async def test_database_without_accounts_takes_the_keys_of_whoever_opens_it(kept: str) -> None:
    await opens(kept, given({1: TWO}, 1, OTHER))
    await opens(kept, FIRST, account=True)
    await refused(kept, given({1: TWO}, 1, OTHER), "pepper", "another key 1")


async def test_only_one_of_two_first_starts_with_different_keys_succeeds(kept: str) -> None:
    await opens(kept, FIRST, account=True)
    done = await asyncio.gather(
        opens(kept, given({1: ONE, 2: TWO}, 2)), opens(kept, given({1: ONE, 2: THREE}, 2)), return_exceptions=True
    )
    assert sorted(type(each).__name__ for each in done) == ["NoneType", "VaultMisfit"]


async def test_embedded_service_refuses_the_key_file_of_another_installation(tmp_path: Path) -> None:
    for name in ("shop", "other"):
        async with cambist.open(f"sqlite:///{tmp_path}/{name}/shop.db") as service:
            await service.create_account(name)
    shutil.copy(tmp_path / "other" / "vault.key", tmp_path / "shop" / "vault.key")
    with pytest.raises(VaultMisfit, match=r"the key file .*/shop/vault.key has another pepper"):
        async with cambist.open(f"sqlite:///{tmp_path}/shop/shop.db"):
            pass
