"""Alarms: operators and merchants are notified once when a problem begins, and once when it is over
(docs/alarms.md)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.adapters.script import Ending, Twist
from cambist.core.domain.accounts.accounts import Mode
from cambist.core.domain.alarms import AlarmRecipient
from cambist.core.domain.errors import Refusal
from cambist.core.domain.gateways.gateways import GatewayStatus
from cambist.core.domain.money import Rub
from cambist.core.domain.payments.suspense import Suspense
from cambist.core.domain.webhooks.breaker import Breaker, endpoint_id
from cambist.core.usecases.accounts import accounts
from cambist.core.usecases.alarms.channels import channels_failing, list_channels, list_problems, try_channels
from cambist.core.usecases.alarms.problems import SOURCES, look
from cambist.core.usecases.alarms.telling import tell_recipient
from cambist.core.usecases.gateways.gateways import list_gateways, set_gateway
from cambist.core.usecases.installation.backups import note_backup
from cambist.core.usecases.jobs import LEASE, run
from cambist.core.usecases.recurring_jobs import TELL_ALARMS, missing_recurring_jobs, start_recurring_jobs
from cambist.frontends.app.compose import Adapters, open_app
from cambist.frontends.settings.plugins import PluginError
from cambist.frontends.settings.sources import load
from cambist.ports import NotConfigured, OutcomeUnknown, Unavailable
from cambist.ports.alarms import Alarms, QuietHours
from cambist.ports.bank import InvoiceStatus
from cambist.ports.bank_simulator import Simulation
from cambist.ports.chain import Network, Sighting
from cambist.ports.checking import Shortage
from cambist.ports.faults import Unreadable
from cambist.ports.jobs import Job
from tests.alarm_kit import Listener, Postbox
from tests.apps import TestApp, open_test_app
from tests.crash_points import CrashPoint, Killed, fused
from tests.http.test_webhook_endpoints import made
from tests.tables import table

LIVE = "simulator-live"
DOWN = f"gateway:{LIVE}"
HOUR, MINUTE = 3600, 60


class FewNodes:
    """A network with too few answering nodes, and the time since when."""

    since: datetime | None = None

    async def lookup(self, network: Network, tx_hash: str) -> Sighting:
        raise Unavailable("nobody looks")

    async def shortages(self) -> list[Shortage]:
        told = "1 of 2 nodes answer, and 2 have to agree"
        return [] if self.since is None else [Shortage(of="tron", since=self.since, told=told)]


@asynccontextmanager
async def alarmed(*channels: Alarms, **settings: Any) -> AsyncIterator[TestApp]:
    """An app with these channels, each with its job; the receiver's job is the merchant's own."""
    given = Adapters(alarms=channels)
    async with open_test_app(adapters=given, **{"alarm_backup_hours": 0, **settings}) as app:
        await start_recurring_jobs(app.ports)
        await app.work()
        yield app


async def set_down(app: TestApp, status: GatewayStatus = GatewayStatus.DOWN) -> None:
    await set_gateway(app.ports, LIVE, status)


async def strand(app: TestApp, *names: str) -> None:
    """Book money in suspense: an action item that is not urgent. The journal has no entry for it."""
    app.made_up = True
    async with app.ports.storage.unit() as unit:
        for name in names:
            unit[Suspense].add(
                Suspense(
                    id=name,
                    account_id=app.account.account_id,
                    mode=Mode.LIVE,
                    payment_id="pay_x",
                    amount=Rub(12_345_67),
                    reason="late",
                    received_at=app.clock.now(),
                )
            )
        await unit.commit()


async def row(app: TestApp, name: str = "listener") -> AlarmRecipient:
    found = await app.ports.storage.get(AlarmRecipient, name)
    assert found is not None
    return found


class TestAProblem:
    async def test_bank_down_alarms_an_operator_once_and_so_does_its_recovery(self) -> None:
        """Two processes work on the jobs of one storage, and only one of them sends the alarm."""
        ear, eye = Listener("ear"), Listener("eye")
        async with alarmed(ear, eye, alarm_quiet_hours=QuietHours(start=0, end=1439)) as app:
            app.script.create.extend([Twist(ending=Ending.UNAVAILABLE)] * 10)
            for _ in range(10):
                await app.create(mode="live")
            [gateway] = await list_gateways(app.ports, Mode.LIVE)
            assert gateway.status is GatewayStatus.DOWN
            for _ in range(20):
                await app.clock.advance(MINUTE)
                first = await app.ports.storage.claim(100, LEASE)
                second = await app.ports.storage.claim(100, LEASE)
                for job in (*second, *first):
                    await run(app.ports, job)
            assert [alarm.is_urgent for alarm in ear.heard] == [True]
            assert not ear.heard[0].silent
            assert ear.news == eye.news == [([DOWN], [])]
            [line] = ear.heard[0].begun
            assert line.text == "gateway simulator-live: down: provider_errors"
            for _ in range(10):
                await app.create(mode="live")
            await app.work(10 * MINUTE)
            assert ear.news == eye.news == [([DOWN], []), ([], [DOWN])]
            await app.work(10 * MINUTE)
            assert len(ear.asked) == 2

    async def test_short_outages_of_a_gateway_raise_no_alarm(self) -> None:
        ear = Listener()
        async with alarmed(ear) as app:
            for _ in range(5):
                await set_down(app)
                await app.work(50)
                await set_down(app, GatewayStatus.OPERATIONAL)
                await app.work(20)
            await app.work(HOUR)
            assert ear.heard == []

    async def test_test_mode_raises_no_alarm(self) -> None:
        ear = Listener()
        async with alarmed(ear) as app:
            payment = await app.created()
            await app.simulate(payment["id"], outcome="amount_mismatch", actual_amount_rub="7.00")
            await set_gateway(app.ports, "simulator-test", GatewayStatus.DOWN)
            await app.work(5 * MINUTE)
            assert ear.heard == []

    async def test_problem_is_sent_without_amounts_and_names(self) -> None:
        ear = Listener()
        async with alarmed(ear) as app:
            created = await app.create(mode="live")
            came = Simulation(status=InvoiceStatus.PAID, amount_kopecks=7_00, payer_name="Ivan Petrov")
            await app.told(created.json()["id"], came)
            await strand(app, "sus_1")
            await app.work(HOUR)
            text = repr(ear.heard)
            assert f"mismatch:{created.json()['id']}" in text
            assert "sus_1" in text
            assert not any(secret in text for secret in ("100.00", "7.00", "12345", "RUB", "Petrov"))

    async def test_many_are_one_digest_and_the_next_comes_after_its_time(self) -> None:
        ear = Listener()
        async with alarmed(ear, alarm_digest_minutes=30) as app:
            await strand(app, *(f"sus_{number:03}" for number in range(40)))
            await app.work(MINUTE)
            assert [len(alarm.begun) for alarm in ear.heard] == [40]
            for number in range(5):
                await strand(app, f"sus_more_{number}")
                await app.work(5 * MINUTE)
            assert len(ear.heard) == 1
            await app.work(6 * MINUTE)
            assert [len(alarm.begun) for alarm in ear.heard] == [40, 5]
            assert len(ear.heard[1].going_on) == 40

    async def test_waits_for_the_morning_unless_it_is_urgent(self) -> None:
        ear = Listener()
        async with alarmed(ear, alarm_quiet_hours=QuietHours(start=0, end=60)) as app:
            assert app.clock.now().hour == 0
            await strand(app, "sus_1")
            await app.work(59 * MINUTE)
            assert ear.heard == []
            await app.work(2 * MINUTE)
            assert ear.news == [(["suspense:sus_1"], [])]

    async def test_unreadable_source_is_a_problem_and_ends_no_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def unreadable(_: object) -> Any:
            raise Unreadable("Suspense", "sus_1", "field amount: ValueError")

        ear = Listener()
        async with alarmed(ear) as app:
            await strand(app, "sus_1")
            await app.work(MINUTE)
            monkeypatch.setitem(SOURCES, "suspense", unreadable)
            await app.work(HOUR)
            assert ear.news == [(["suspense:sus_1"], []), (["look:suspense"], [])]
            monkeypatch.undo()
            await app.work(HOUR)
            assert ear.news[2:] == [([], ["look:suspense"])]
            assert not any(each.is_urgent for each in ear.heard)

    async def test_unavailable_storage_is_no_problem_but_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        async def away(_: object) -> Any:
            raise Unavailable("away")

        async with alarmed(Listener()) as app:
            for name in SOURCES:
                monkeypatch.setitem(SOURCES, name, away)
            with pytest.raises(Unavailable):
                await look(app.ports)


class TestWhatAlarms:
    async def test_a_backup_that_is_old_or_was_never_noted(self) -> None:
        ear = Listener()
        async with alarmed(ear, alarm_backup_hours=2) as app:
            assert ear.news == [(["backup"], [])]
            assert await note_backup(app.ports, app.clock.now()) == app.clock.now()
            await app.work(HOUR)
            assert ear.news[1:] == [([], ["backup"])]
            await note_backup(app.ports, app.clock.now() - timedelta(days=9))
            await app.work(50 * MINUTE)
            assert len(ear.news) == 2, "an older one that is noted later changes nothing"
            await app.work(20 * MINUTE)
            assert ear.news[2:] == [(["backup"], [])]
            assert not any(each.is_urgent for each in ear.heard)

    async def test_a_settlement_that_is_late(self) -> None:
        ear = Listener()
        async with alarmed(ear) as app:
            async with app.ports.storage.unit() as unit:
                daily = await unit[Job].get("settlement.daily")
                assert daily is not None
                later = app.clock.now() + timedelta(days=9)
                unit[Job].change(daily, due=app.clock.now(), leased_until=later)
                await unit.commit()
            await app.work(HOUR - MINUTE)
            assert ear.heard == []
            await app.work(2 * MINUTE)
            assert ear.news == [(["settlement:live"], [])]
            assert ear.heard[0].is_urgent

    async def test_jobs_that_nobody_does_and_standing_ones_that_are_gone(self) -> None:
        async with alarmed(Listener()) as app:
            async with app.ports.storage.unit() as unit:
                daily = await unit[Job].get("settlement.daily")
                assert daily is not None
                unit[Job].remove(daily)
                await unit.commit()
            assert (await look(app.ports)).problems == (), "a process that was just started catches up"
            await app.clock.advance(6 * MINUTE)
            found = {problem.id for problem in (await look(app.ports)).problems}
            assert found == {"jobs", "standing:settlement.daily"}
            await start_recurring_jobs(app.ports)
            assert {problem.id for problem in (await look(app.ports)).problems} == {"jobs"}

    async def test_dead_channel_is_reported_by_the_others(self) -> None:
        ear, dead = Listener("ear"), Listener("dead")
        async with alarmed(ear, dead) as app:
            dead.faults.extend([Unavailable("dead: status 503")] * 20)
            await strand(app, "sus_1")
            await app.work(HOUR)
            assert ["channel:dead"] in [begun for begun, _ in ear.news]
            assert "channel:dead" not in repr(dead.asked)
            assert not any(each.is_urgent for each in ear.heard)
            dead.faults.clear()
            await app.work(HOUR)
            assert ear.news[-1] == ([], ["channel:dead"])
            assert dead.news == [(["suspense:sus_1"], [])]

    async def test_nodes_of_which_too_few_agree_for_a_minute(self) -> None:
        ear, network = Listener(), FewNodes()
        async with alarmed(ear) as app:
            app.ports = msgspec.structs.replace(app.ports, chain=network)
            network.since = app.clock.now()
            assert (await look(app.ports)).problems == (), "a node that starts again alarms nobody"
            await app.clock.advance(MINUTE)
            [problem] = (await look(app.ports)).problems
            assert (problem.id, problem.urgent) == ("nodes:tron", True)
            assert "1 of 2 nodes answer" in problem.text
            network.since = None
            assert (await look(app.ports)).problems == ()


class TestAChannel:
    async def test_failing_channel_is_shown_and_retried_ever_more_rarely(self) -> None:
        ear = Listener()
        async with alarmed(ear) as app:
            ear.faults.extend([NotConfigured("listener: the token is not taken")] * 1000)
            await strand(app, "sus_1")
            await app.work(3 * HOUR)
            assert 15 < len(ear.asked) < 25, "every ten minutes in the end"
            [shown] = await list_channels(app.ports)
            assert (shown.fault, shown.knows, shown.told_at) == ("listener: the token is not taken", 0, None)
            assert (await channels_failing(app.ports))["listener"] > 3 * HOUR - 2 * MINUTE
            ear.faults.clear()
            await strand(app, "sus_2")
            await app.work(HOUR)
            assert ear.news == [(["suspense:sus_1", "suspense:sus_2"], [])], "what is so by now, once"
            assert await channels_failing(app.ports) == {"listener": 0.0}

    @table(("asked", "waits"), [(1800.0, 1800), (10_000_000.0, HOUR), (0.0, 10)])
    async def test_channel_is_left_alone_for_as_long_as_it_says(self, asked: float, waits: int) -> None:
        ear = Listener()
        async with alarmed(ear) as app:
            ear.faults.append(Unavailable("429", retry_after=asked))
            await strand(app, "sus_1")
            await app.work(MINUTE)
            began = ear.asked[0].at
            await app.work(2 * HOUR)
            assert (ear.heard[0].at - began).total_seconds() == waits

    async def test_channel_without_an_answer_gets_the_same_message_again(self) -> None:
        """A mailbox knows it by its id, and a chat shows it twice at worst."""
        ear = Listener()
        async with alarmed(ear) as app:
            ear.faults.append(OutcomeUnknown("no answer"))
            await strand(app, "sus_1")
            await app.work(MINUTE)
            await strand(app, "sus_2")
            await app.work(HOUR)
            assert ear.asked[0].id == ear.asked[1].id
            assert [[line.id for line in each.begun] for each in ear.asked] == [
                ["suspense:sus_1"],
                ["suspense:sus_1"],
                ["suspense:sus_2"],
            ]

    async def test_channel_silent_for_an_hour_gets_a_new_message(self) -> None:
        ear = Listener()
        async with alarmed(ear) as app:
            ear.faults.extend([OutcomeUnknown("no answer")] * 14)
            await strand(app, "sus_1")
            await app.work(3 * HOUR)
            assert len({each.id for each in ear.asked}) > 1
            assert ear.news == [(["suspense:sus_1"], [])]

    @table("after", [False, True])
    @table("at", [1, 2])
    async def test_crash_at_any_commit_keeps_one_message_id(self, at: int, *, after: bool) -> None:
        ear = Listener()
        async with alarmed(ear) as app:
            await strand(app, "sus_1")
            await app.clock.advance(MINUTE)
            [job] = await app.ports.storage.claim(1, LEASE, kind="alarm.tell")
            with pytest.raises(Killed):
                await tell_recipient(fused(app.ports, CrashPoint(at, after=after)), job)
            await app.work(10 * MINUTE)
            assert len({each.id for each in ear.heard}) == 1
            assert len(ear.heard) == (2 if (at, after) == (2, False) else 1)
            assert (await row(app)).sending is None

    async def test_lost_job_of_a_channel_changes_nothing(self) -> None:
        ear = Listener()
        async with alarmed(ear) as app:
            await strand(app, "sus_1")
            await app.clock.advance(MINUTE)
            [job] = await app.ports.storage.claim(1, LEASE, kind="alarm.tell")
            await app.clock.advance(2 * LEASE)
            [again] = await app.ports.storage.claim(1, LEASE, kind="alarm.tell")
            await tell_recipient(app.ports, again)
            await tell_recipient(app.ports, job)
            assert [each.problem.id for each in (await row(app)).known] == ["suspense:sus_1"]
            assert ear.news == [(["suspense:sus_1"], [])]

    async def test_mirroring_channel_gets_all_open_problems_every_minute(self) -> None:
        mirror = Listener(mirrors=True)
        async with alarmed(mirror, alarm_quiet_hours=QuietHours(start=0, end=1439)) as app:
            await strand(app, "sus_1")
            await app.work(3 * MINUTE)
            told = [[line.id for line in (*each.begun, *each.going_on)] for each in mirror.heard]
            assert told == [["suspense:sus_1"]] * 3
            mirror.faults.append(OutcomeUnknown("no answer"))
            await strand(app, "sus_2")
            await app.work(2 * MINUTE)
            assert {line.id for line in (*mirror.heard[-1].begun, *mirror.heard[-1].going_on)} == {
                "suspense:sus_1",
                "suspense:sus_2",
            }

    async def test_channel_no_longer_in_the_settings_is_left_alone(self) -> None:
        ear = Listener()
        async with alarmed(ear) as app:
            await strand(app, "sus_1")
            async with app.ports.storage.unit() as unit:
                unit[Job].add(TELL_ALARMS.first("gone", app.clock.now(), app.clock.now()))
                await unit.commit()
            await app.work(2 * HOUR)
            assert ear.news == [(["suspense:sus_1"], [])]

    async def test_has_a_standing_job(self) -> None:
        async with open_test_app(adapters=Adapters(alarms=[Listener()])) as app:
            assert "alarm.tell:listener" in await missing_recurring_jobs(app.ports)
            await start_recurring_jobs(app.ports)
            assert await missing_recurring_jobs(app.ports) == ()

    async def test_needs_a_name_of_its_own(self) -> None:
        for names in (("a", "a"), ("a/b",)):
            with pytest.raises(PluginError):
                async with open_test_app(adapters=Adapters(alarms=[Listener(name) for name in names])):
                    pass

    async def test_may_come_from_a_package(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        described = tmp_path / "theirs-1.0.dist-info"
        described.mkdir()
        (described / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
        (described / "entry_points.txt").write_text("[cambist.alarms]\ntheirs = theirs_alarms:make\n")
        code = "from tests.alarm_kit import Listener\n\n\ndef make(tools):\n    return Listener('theirs-ear')\n"
        (tmp_path / "theirs_alarms.py").write_text(code)
        monkeypatch.syspath_prepend(str(tmp_path))
        settings = load({"CAMBIST_ALARMS": "theirs", "CAMBIST_DATABASE_URL": "memory://"}, {}, tmp_path).settings
        async with open_app(settings) as app:
            assert await try_channels(app.ports, None) == {"theirs-ear": None}

    async def test_can_be_tried(self) -> None:
        ear, dead = Listener("ear"), Listener("dead")
        async with alarmed(ear, dead) as app:
            dead.faults.append(NotConfigured("dead: 401"))
            assert await try_channels(app.ports, None) == {"ear": None, "dead": "dead: 401"}
            assert await try_channels(app.ports, "ear") == {"ear": None}
            assert [each.is_test for each in ear.heard] == [True, True]
            with pytest.raises(Refusal):
                await try_channels(app.ports, "nose")

    async def test_problem_is_shown_with_the_channels_that_sent_it(self) -> None:
        ear = Listener()
        async with alarmed(ear) as app:
            await strand(app, "sus_1")
            [before] = await list_problems(app.ports)
            await app.work(MINUTE)
            [after] = await list_problems(app.ports)
            assert (before.told_by, after.told_by) == ((), ("listener",))


async def dead_receiver(app: TestApp, mode: Mode = Mode.LIVE, further: str | None = None) -> None:
    """The merchant's receiver stops answering now, its own or a further endpoint's."""
    now = app.clock.now()
    async with app.ports.storage.unit() as unit:
        unit[Breaker].add(
            Breaker(
                id=endpoint_id(app.account.account_id, mode, further),
                account_id=app.account.account_id,
                mode=mode,
                failures=10,
                opened_at=now,
                next_probe_at=now + timedelta(days=30),
                last_answer="timeout",
            )
        )
        await unit.commit()


async def receiver_answers(app: TestApp) -> None:
    async with app.ports.storage.unit() as unit:
        breaker = await unit[Breaker].get(endpoint_id(app.account.account_id, Mode.LIVE))
        assert breaker is not None
        unit[Breaker].change(breaker, opened_at=None, next_probe_at=None, failures=0)
        await unit.commit()


class TestMerchants:
    async def test_merchant_with_an_address_is_alerted_to_a_receiver_dead_an_hour(self) -> None:
        post = Postbox()
        async with alarmed(post) as app:
            await accounts.set_settings(app.ports, app.account.account_id, {"alarm_email": "dev@shop.example"})
            await dead_receiver(app)
            await app.work(HOUR - MINUTE)
            assert (post.letters, post.heard) == ([], [])
            await app.work(10 * MINUTE)
            operators = f"breaker:{endpoint_id(app.account.account_id, Mode.LIVE)}"
            assert post.news == [([operators], [])]
            [(address, letter)] = post.letters
            assert (address, letter.for_merchant, [line.id for line in letter.begun]) == (
                "dev@shop.example",
                True,
                ["receiver"],
            )
            await receiver_answers(app)
            await app.work(10 * MINUTE)
            assert post.news[1:] == [([], [operators])]
            assert [[line.id for line in each.over] for _, each in post.letters[1:]] == [["receiver"]]
            async with app.ports.storage.unit() as unit:
                assert await unit[Job].get(f"alarm.tell:postbox/{app.account.account_id}") is None
                assert await unit[AlarmRecipient].get(f"postbox/{app.account.account_id}") is None

    @table("channel", [Postbox(), Listener()])
    async def test_merchant_without_address_or_channel_gets_nothing(self, channel: Listener) -> None:
        async with alarmed(channel) as app:
            if not isinstance(channel, Postbox):
                await accounts.set_settings(app.ports, app.account.account_id, {"alarm_email": "dev@shop.example"})
            await dead_receiver(app)
            await app.work(3 * HOUR)
            assert len(channel.heard) == 1
            assert not getattr(channel, "letters", [])

    async def test_further_endpoint_is_alarmed_beside_the_accounts_own(self) -> None:
        post = Postbox()
        async with alarmed(post) as app:
            await accounts.set_settings(app.ports, app.account.account_id, {"alarm_email": "dev@shop.example"})
            endpoint = (await made(app, mode="live"))["id"]
            await dead_receiver(app, further=endpoint)
            await app.work(HOUR + 10 * MINUTE)
            [(_, letter)] = post.letters
            assert [line.id for line in letter.begun] == [f"receiver:{endpoint}"]
            assert endpoint in letter.begun[0].text
            await dead_receiver(app)
            await app.work(HOUR + 10 * MINUTE)
            assert [line.id for line in post.letters[1][1].begun] == ["receiver"]

    async def test_merchant_is_not_alarmed_of_a_test_mode_receiver(self) -> None:
        post = Postbox()
        async with alarmed(post) as app:
            await accounts.set_settings(app.ports, app.account.account_id, {"alarm_email": "dev@shop.example"})
            await dead_receiver(app, Mode.TEST)
            await app.work(3 * HOUR)
            assert (post.letters, post.heard) == ([], [])

    async def test_merchant_who_removes_the_address_gets_no_more_alarms(self) -> None:
        post = Postbox()
        async with alarmed(post) as app:
            await accounts.set_settings(app.ports, app.account.account_id, {"alarm_email": "dev@shop.example"})
            await dead_receiver(app)
            await app.work(2 * HOUR)
            await accounts.set_settings(app.ports, app.account.account_id, {"alarm_email": ""})
            await app.work(HOUR)
            await receiver_answers(app)
            await app.work(HOUR)
            assert len(post.letters) == 1

    async def test_merchant_whose_server_refuses_the_mail_delays_nobody(self) -> None:
        post = Postbox()
        async with alarmed(post) as app:
            await accounts.set_settings(app.ports, app.account.account_id, {"alarm_email": "dev@shop.example"})
            await dead_receiver(app)
            await app.work(HOUR + MINUTE)
            post.faults.extend([NotConfigured("e-mail: the recipient is not taken (550)")] * 3)
            await strand(app, "sus_1")
            await app.work(3 * HOUR)
            assert "suspense:sus_1" in repr(post.heard)
            assert len(post.letters) == 1
