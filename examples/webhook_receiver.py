"""A merchant's webhook receiver with only the standard library: verify, recognise duplicates, answer at once.

    WEBHOOK_SECRET=… python examples/webhook_receiver.py 8090

Then set the account's webhook: `cambist account set ACCOUNT_ID webhook_url=http://127.0.0.1:8090/ webhook_secret=-`,
and enter the secret when the command asks for it (plain http and loopback are for test mode only).
"""

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

from cambist import NotVerified, verify_signature

LARGEST = 1_000_000


class Receiver(BaseHTTPRequestHandler):
    """Answer within the ten seconds that a receiver has. Put longer work into your own queue."""

    seen: set[str] = set()  # noqa: RUF012 - a shop stores these in its database, beside their orders

    def do_POST(self) -> None:
        """Handle one event. The signature covers the raw body, so parse it only after verification."""
        size = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(min(size, LARGEST))
        try:
            event_id = verify_signature(dict(self.headers), body, [os.environ["WEBHOOK_SECRET"]], time.time())
        except NotVerified as error:
            self.send_error(400, str(error))
            return
        if event_id not in self.seen:
            self.seen.add(event_id)
            event = json.loads(body)
            print(event["event"], event.get("payment_id"), event.get("status"), flush=True)
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log nothing."""


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
