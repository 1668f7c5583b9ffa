"""Contracts of the test chains, in EVM bytecode: a token, and a contract that makes several transfers at once."""

import re

_OPCODES = {
    "STOP": 0x00, "ADD": 0x01, "SUB": 0x03, "LT": 0x10, "EQ": 0x14, "ISZERO": 0x15, "SHL": 0x1B, "SHR": 0x1C,
    "CALLER": 0x33, "CALLDATALOAD": 0x35, "CALLDATASIZE": 0x36, "POP": 0x50, "MSTORE": 0x52, "SLOAD": 0x54,
    "SSTORE": 0x55, "JUMP": 0x56, "JUMPI": 0x57, "GAS": 0x5A, "JUMPDEST": 0x5B, "DUP1": 0x80, "DUP2": 0x81,
    "DUP6": 0x85, "SWAP1": 0x90, "LOG3": 0xA3, "CALL": 0xF1, "RETURN": 0xF3, "REVERT": 0xFD,
}  # fmt: skip

TRANSFER = 0xDDF252AD1BE2C89B69C2B068FC378DAA952BA7F163C4A11628F55A4DF523B3EF


def assembled(source: str) -> str:
    """The code: `0x…` is pushed, `name:` is a place to jump to, `@name` pushes it."""
    words = re.sub(r";.*", "", source).split()
    sizes = [3 if word[0] == "@" else 1 + max(1, len(word[2:]) // 2) if word.startswith("0x") else 1 for word in words]
    places = {word[:-1]: sum(sizes[:number]) for number, word in enumerate(words) if word.endswith(":")}
    code = bytearray()
    for word in words:
        if word.startswith("0x"):
            pushed = bytes.fromhex(word[2:])
            code += bytes([0x5F + len(pushed)]) + pushed
        elif word[0] == "@":
            code += b"\x61" + places[word[1:]].to_bytes(2)
        else:
            code.append(_OPCODES["JUMPDEST" if word.endswith(":") else word])
    return f"0x{code.hex()}"


TOKEN = assembled(f"""
    0x00 CALLDATALOAD 0xe0 SHR              ; what is called
    DUP1 0xa9059cbb EQ @transfer JUMPI
    0x70a08231 EQ @balance JUMPI
    fail: 0x00 0x00 REVERT
    transfer: POP
        0x24 CALLDATALOAD CALLER SLOAD      ; amount, what the caller has
        DUP2 DUP2 LT @fail JUMPI
        DUP2 SWAP1 SUB CALLER SSTORE
        DUP1 0x04 CALLDATALOAD SLOAD ADD 0x04 CALLDATALOAD SSTORE
        0x00 MSTORE
        0x04 CALLDATALOAD CALLER 0x{TRANSFER:064x} 0x20 0x00 LOG3
        0x01 0x00 MSTORE 0x20 0x00 RETURN
    balance:
        0x04 CALLDATALOAD SLOAD 0x00 MSTORE 0x20 0x00 RETURN
""")
"""The transfer half of an ERC20: `transfer` and `balanceOf`. An address's balance lies in the slot of its number."""

PAYER = assembled("""
    0x00                                    ; where the next transfer stands in the data
    next: CALLDATASIZE DUP2 LT ISZERO @end JUMPI
        0xa9059cbb 0xe0 SHL 0x00 MSTORE
        DUP1 0x20 ADD CALLDATALOAD 0x04 MSTORE
        DUP1 0x40 ADD CALLDATALOAD 0x24 MSTORE
        0x00 0x00 0x44 0x00 0x00 DUP6 CALLDATALOAD GAS CALL
        ISZERO @fail JUMPI
        0x60 ADD @next JUMP
    end: STOP
    fail: 0x00 0x00 REVERT
""")
"""Makes the transfers that its data lists, three words each: token, recipient, amount. All of them, or none."""


def orders(*transfers: tuple[str, bytes, int]) -> str:
    """The data for PAYER: token, recipient and amount of each."""
    words = [(bytes.fromhex(token[2:]), to, amount.to_bytes(32)) for token, to, amount in transfers]
    return "0x" + "".join(part.rjust(32, b"\0").hex() for each in words for part in each)
