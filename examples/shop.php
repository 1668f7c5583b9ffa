<?php
// A shop in PHP 8.1 or newer, without packages: it creates a payment, verifies the webhook, and ships each order once.
//
//   . ./cambist.env    # made by: cambist account create "My company" --env > cambist.env
//   cambist account set $ACCOUNT_ID webhook_url=http://127.0.0.1:3000/hooks --generate-secret
//   export WEBHOOK_SECRET=…    # which the last command printed
//   php -S 127.0.0.1:3000 examples/shop.php
//
// Then open http://127.0.0.1:3000, buy, and pay on the test page.
const UUID = '/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/D';
$folder = getenv('ORDERS') ?: 'orders';
@mkdir($folder); // a file for each order; a real shop has a database
$file = fn ($order, $state) => "$folder/$order.$state";

function buy(string $order): ?string
{
    $headers = [
        'X-Api-Key: ' . getenv('CAMBIST_API_KEY'),
        'X-Api-Secret: ' . getenv('CAMBIST_API_SECRET'),
        "Idempotency-Key: $order", // a second click gets the same payment
        'Content-Type: application/json',
    ];
    $body = json_encode(['amount_rub' => '490.00', 'external_id' => $order]);
    $http = ['method' => 'POST', 'header' => $headers, 'content' => $body, 'ignore_errors' => true, 'timeout' => 35];
    $answer = @file_get_contents(getenv('CAMBIST_URL') . '/api/v1/payments', false, stream_context_create(['http' => $http]));
    $payment = json_decode((string) $answer, true);
    if (!isset($payment['payment_url'])) {
        error_log("no payment: $answer");
    }
    return $payment['payment_url'] ?? null;
}

function is_genuine(string $body): bool
{
    $timestamp = $_SERVER['HTTP_X_WEBHOOK_TIMESTAMP'] ?? '';
    $expected = 'sha256=' . hash_hmac('sha256', "$timestamp.$body", (string) getenv('WEBHOOK_SECRET'));
    $is_fresh = ctype_digit($timestamp) && abs(time() - (int) $timestamp) <= 300;
    return getenv('WEBHOOK_SECRET') && $is_fresh && hash_equals($expected, $_SERVER['HTTP_X_WEBHOOK_SIGNATURE'] ?? '');
}

[$place, $order] = explode('/', ltrim(parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH), '/')) + ['', ''];
$wanted = "$_SERVER[REQUEST_METHOD] $place";
if ($wanted === 'GET ') {
    $order = preg_replace('/^(.{8})(.{4})(.{4})(.{4})/', '$1-$2-$3-$4-', bin2hex(random_bytes(16)));
    echo "<form method=\"post\" action=\"/orders/$order\"><button>Tea, 490 RUB</button></form>";
} elseif ($wanted === 'POST hooks') {
    $body = file_get_contents('php://input');
    $event = is_genuine($body) ? json_decode($body, true) : null;
    http_response_code($event === null ? 400 : 200);
    $id = $event['external_id'] ?? '';
    $is_paid = ($event['event'] ?? '') === 'payment.status_changed' && $event['status'] === 'paid';
    // Webhooks may come twice: only one rename of the file succeeds.
    if ($is_paid && preg_match(UUID, $id) && @rename($file($id, 'unpaid'), $file($id, 'shipped'))) {
        error_log("shipped $id");
    }
} elseif ($place !== 'orders' || !preg_match(UUID, $order)) {
    http_response_code(404);
} elseif ($wanted === 'GET orders') {
    echo file_exists($file($order, 'shipped')) ? 'shipped' : (file_exists($file($order, 'unpaid')) ? 'unpaid' : 'unknown');
} else {
    if (!file_exists($file($order, 'shipped'))) {
        touch($file($order, 'unpaid'));
    }
    $address = buy($order);
    http_response_code($address ? 303 : 503);
    header('Location: ' . ($address ?? '/'), true, $address ? 303 : 503);
}
