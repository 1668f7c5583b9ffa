"""Each client's answers to a broadcast transaction (docs/providers/chains.md "Paying out")."""

from cambist.adapters.payouts.evm.answers import Taken, meaning
from tests.tables import table

YES, USED, LATER, NO = Taken.YES, Taken.USED, Taken.LATER, Taken.NO
HASH = "ab" * 32

GETH = [
    ("already known", YES),
    (f"known transaction: {HASH}", YES),
    (f"known transaction: 0x{HASH}", YES),
    ("known transaction: 0xab", YES),
    ("nonce too low", USED),
    ("nonce too low: next nonce 5, tx nonce 4", USED),
    ("nonce too high", LATER),
    ("transaction underpriced", LATER),
    ("transaction underpriced: tip needed 1, tip permitted 0", LATER),
    ("replacement transaction underpriced", LATER),
    ("transaction gas price below minimum: gas tip cap 1, minimum needed 2", LATER),
    ("max fee per gas less than block base fee: address 0x0, maxFeePerGas: 1, baseFee: 2", LATER),
    ("insufficient funds for gas * price + value", LATER),
    ("insufficient funds for gas * price + value: balance 1, tx cost 2, overshot 1", LATER),
    ("txpool is full", LATER),
    ("account limit exceeded", LATER),
    ("in-flight transaction limit reached for delegated accounts", LATER),
    ("address already reserved", LATER),
    ("gas limit reached", LATER),
    ("invalid sender", NO),
    ("invalid chain id for signer: have 1 want 56", NO),
    ("intrinsic gas too low", NO),
    ("intrinsic gas too low: gas 20000, minimum needed 21000", NO),
    ("exceeds block gas limit", NO),
    ("transaction gas limit too high (cap: 16777216, tx: 20000000)", NO),
    ("tx fee (1.20 ether) exceeds the configured cap (1.00 ether)", NO),
    ("max priority fee per gas higher than max fee per gas", NO),
    ("transaction type not supported", NO),
    ("oversized data", NO),
    ("sender not an eoa", NO),
]
BSC = [
    ("gas price too low", LATER),
    ("replacement transaction underpriced: new tx gas fee cap 1 <= 2 queued", LATER),
]
BESU = [
    ("Known transaction", YES),
    ("Nonce too low", USED),
    ("NONCE_TOO_LOW", USED),
    ("Upfront cost exceeds account balance", LATER),
    ("Gas price below configured minimum gas price", LATER),
    ("Max fee per gas less than block base fee", LATER),
    ("Replacement transaction underpriced", LATER),
    ("Transaction nonce is too distant from current sender nonce", LATER),
    ("An invalid transaction with a lower nonce exists", LATER),
    ("Transaction pool not enabled.", LATER),
    ("Transaction pool full", LATER),
    ("Intrinsic gas exceeds gas limit", NO),
    ("Transaction gas limit exceeds block gas limit", NO),
    ("Transaction fee cap exceeded", NO),
    ("Max priority fee per gas exceeds max fee per gas", NO),
    ("Invalid signature", NO),
    ("Wrong chainId", NO),
    ("unknown transaction type: 2", NO),
]
NETHERMIND = [
    ("AlreadyKnown", YES),
    ("already known", YES),
    ("OldNonce, Current nonce: 5, nonce of rejected tx: 4", USED),
    ("NonceGap, Future nonce. Expected nonce: 5", LATER),
    ("nonce too far in future", LATER),
    ("FeeTooLow, EffectivePriorityFeePerGas too low 1 < 2, BaseFee: 3", LATER),
    ("FeeTooLowToCompete", LATER),
    ("InsufficientFunds, Account balance: 1, cumulative cost: 2", LATER),
    ("insufficient MaxFeePerGas for sender balance", LATER),
    ("FailedToResolveSender", NO),
    ("failed to recover sender", NO),
    ("GasLimitExceeded, Gas limit: 1, gas limit of rejected tx: 2", NO),
    ("SenderIsContract", NO),
]
ERIGON = [
    ("ALREADY_EXISTS: already known", YES),
    ("existing txn with same hash", YES),
    ("mined", USED),
    ("nonce too low", USED),
    ("underpriced", LATER),
    ("fee too low", LATER),
    ("could not replace existing tx", LATER),
    ("replaced by transaction with higher tip", LATER),
    ("insufficient funds", LATER),
    ("pending sub-pool is full", LATER),
    ("queued sub-pool is full", LATER),
    ("IntrinsicGas", NO),
    ("RLPTooLong", NO),
]
OTHERS = [
    ("transaction already imported", YES),
    ("Transaction with the same hash was already imported.", YES),
    ("Transaction nonce is too low. Try incrementing the nonce.", USED),
    ("Insufficient funds for gas * price + value", LATER),
]
NOBODY_KNOWS = [
    ("", None),
    ("something new", None),
    ("Unknown transaction", None),
    ("unknown account", None),
    ("this is no known transaction", None),
    ("not already known", None),
    ("block already known", None),
    ("known transaction: pruned, send it again", None),
    ("already known to be bad", None),
    ("address already exists", None),
    ("determined", None),
    ("Internal error", None),
]


@table(("words", "meant"), [*GETH, *BSC, *BESU, *NETHERMIND, *ERIGON, *OTHERS, *NOBODY_KNOWS])
def test_each_client_has_its_words_and_only_exact_ones_are_a_yes(words: str, meant: Taken | None) -> None:
    assert meaning(words) is meant
