// A shop in Node 18 or newer, without packages: it creates a payment, verifies the webhook, and ships each order once.
//
//   . ./cambist.env    # made by: cambist account create "My company" --env > cambist.env
//   cambist account set $ACCOUNT_ID webhook_url=http://127.0.0.1:3000/hooks --generate-secret
//   export WEBHOOK_SECRET=…    # which the last command printed
//   PORT=3000 node examples/shop.mjs
//
// Then open http://127.0.0.1:3000, buy, and pay on the test page.
import { createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";

const { CAMBIST_URL, CAMBIST_API_KEY, CAMBIST_API_SECRET, WEBHOOK_SECRET, ORDERS = "orders", PORT = 3000 } = process.env;
if (!CAMBIST_URL || !CAMBIST_API_KEY || !CAMBIST_API_SECRET || !WEBHOOK_SECRET) throw new Error("set the variables above");
mkdirSync(ORDERS, { recursive: true }); // a file for each order; a real shop has a database
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const file = (order, state) => `${ORDERS}/${order}.${state}`;

async function buy(order) {
  if (!existsSync(file(order, "shipped"))) writeFileSync(file(order, "unpaid"), "");
  const answer = await fetch(`${CAMBIST_URL}/api/v1/payments`, {
    method: "POST",
    headers: {
      "X-Api-Key": CAMBIST_API_KEY,
      "X-Api-Secret": CAMBIST_API_SECRET,
      "Idempotency-Key": order, // a second click gets the same payment
      "Content-Type": "application/json",
    },
    body: JSON.stringify({ amount_rub: "490.00", external_id: order }),
  });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  return (await answer.json()).payment_url;
}

function isGenuine(headers, body) {
  const timestamp = headers["x-webhook-timestamp"] ?? "";
  if (!/^\d{1,12}$/.test(timestamp) || Math.abs(Date.now() / 1000 - Number(timestamp)) > 300) return false;
  const expected = "sha256=" + createHmac("sha256", WEBHOOK_SECRET).update(`${timestamp}.`).update(body).digest("hex");
  const given = Buffer.from(headers["x-webhook-signature"] ?? "");
  return given.length === expected.length && timingSafeEqual(given, Buffer.from(expected));
}

function hook(headers, body) {
  if (!isGenuine(headers, body)) return 400;
  const event = JSON.parse(body);
  const isPaid = event.event === "payment.status_changed" && event.status === "paid";
  if (isPaid && UUID.test(event.external_id) && existsSync(file(event.external_id, "unpaid"))) {
    renameSync(file(event.external_id, "unpaid"), file(event.external_id, "shipped")); // webhooks may come twice
    console.log("shipped", event.external_id);
  }
  return 200;
}

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const [, place, order] = request.url.split("/");
  const wanted = `${request.method} ${place}`;
  if (wanted === "GET ") return response.end(`<form method="post" action="/orders/${randomUUID()}"><button>Tea, 490 RUB</button></form>`);
  if (wanted === "POST hooks") return response.writeHead(hook(request.headers, Buffer.concat(chunks))).end();
  if (place !== "orders" || !UUID.test(order)) return response.writeHead(404).end();
  if (request.method === "GET") return response.end(["unpaid", "shipped"].find((state) => existsSync(file(order, state))) ?? "unknown");
  const address = await buy(order).catch((error) => console.error(error.message));
  response.writeHead(address ? 303 : 503, address ? { Location: address } : {}).end();
}).listen(Number(PORT), "127.0.0.1");
