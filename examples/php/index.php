<?php
// The three endpoints of a merchant's backend and a page with the button, with PHP and its pdo_sqlite:
// php -S 127.0.0.1:3003 index.php
//
// Orders are kept in SQLite; the transition of an order is one statement.

// A fault that is shown to the caller would go out with a 200, and the event would be lost.
ini_set('display_errors', '0');
// While a secret is replaced, the one before it signs until the switch.
$secrets = [getenv('SVC_WEBHOOK_SECRET') ?: ''];
if (getenv('SVC_WEBHOOK_SECRET_PREVIOUS')) {
    $secrets[] = getenv('SVC_WEBHOOK_SECRET_PREVIOUS');
}
if (count(preg_grep('/^whsec_.{18,}$/', $secrets)) < count($secrets)) {
    http_response_code(500);
    exit('SVC_WEBHOOK_SECRET is missing or too short to be one: it begins with whsec_');
}
foreach (['SVC_BASE_URL', 'SVC_PUBLISHABLE_KEY', 'SVC_CLIENT_ID', 'SVC_CLIENT_SECRET'] as $name) {
    if (!getenv($name)) {
        http_response_code(500);
        exit("$name is missing: see .env.example");
    }
}
const BODY_BYTES_MAX = 65536;
const PRICES = ['livro-receitas' => 15000, 'cafe-amboim' => 6500];
const ITEMS_MAX = 50;
const QUANTITY_MAX = 100;
$application = preg_replace('/^pk_(test|live)_/', '', getenv('SVC_PUBLISHABLE_KEY'));
// Not by the Host header, which is the caller's.
$shop = getenv('SHOP_URL') ?: 'http://127.0.0.1:' . $_SERVER['SERVER_PORT'];

function open(): PDO
{
    $db = new PDO('sqlite:' . (getenv('DATABASE') ?: sys_get_temp_dir() . '/svc-example.db'));
    $db->exec("create table if not exists orders (external_transaction_id text primary key,
        status text not null, amount integer not null, reference_number text)");
    return $db;
}

// A refusal of the service is thrown with its code; after any other fault it may have done what was asked.
function call(string $path, array $headers, ?string $body): array
{
    $http = ['header' => $headers, 'timeout' => 12, 'ignore_errors' => true];
    if ($body !== null) {
        $http += ['method' => 'POST', 'content' => $body];
    }
    $text = file_get_contents(rtrim(getenv('SVC_BASE_URL'), '/') . $path, false, stream_context_create(['http' => $http]));
    $told = json_decode($text ?: '', true);
    if (!is_array($told) || ($told['code'] ?? 200) !== 200) {
        throw new RuntimeException("$path: " . ($told['message'] ?? 'no answer'), $told['code'] ?? 0);
    }
    return $told;
}

// Fetched for each call: PHP forgets everything between two requests, and a token does not belong in a file. A real
// shop keeps it until a minute before it expires, in memory that only its own requests can read, such as APCu.
function token(): string
{
    $basic = base64_encode(getenv('SVC_CLIENT_ID') . ':' . getenv('SVC_CLIENT_SECRET'));
    $form = http_build_query(['grant_type' => 'client_credentials', 'validity_period' => 3600]);
    $headers = ["Authorization: Basic $basic", 'Content-Type: application/x-www-form-urlencoded'];
    return call('/token', $headers, $form)['access_token'];
}

function service(string $path, ?array $body = null): array
{
    $headers = ['Authorization: Bearer ' . token(), 'Content-Type: application/json'];
    return call($path, $headers, $body === null ? null : json_encode($body))['data'];
}

// Only a pending order moves, only to its end, and so only once.
function apply(PDO $db, array $data): void
{
    ['externalTransactionId' => $id, 'paymentStatus' => $status, 'amount' => $amount] = $data;
    if (!in_array($status, ['PEN', 'CON', 'CAN'], true) || read($db, $id) === null) {
        error_log("$id: " . json_encode($status) . ' is nothing to us');
        return;
    }
    if ($status === 'PEN') {
        return;
    }
    $db->beginTransaction();
    $moved = $db->prepare("update orders set status = ?
        where external_transaction_id = ? and status = 'PEN' returning amount, reference_number");
    $moved->execute([$status, $id]);
    $order = $moved->fetch(PDO::FETCH_NUM);
    $moved->closeCursor();
    $reference = $data['referenceNumber'];
    if ($order && ((int) $order[0] !== $amount || ($order[1] ?? $reference) !== $reference)) {
        // Nothing is sent: a person looks first.
        error_log("$id: $amount Kz, $reference reported, $order[0] Kz, $order[1] expected");
    } elseif ($order) {
        // Here, in the same transaction: queue the fulfilment (CON), or give the stock back (CAN).
    }
    $db->commit();
}

function createOrder(PDO $db, string $body, string $application, string $shop): array
{
    $items = json_decode($body, true)['items'] ?? null;
    $amount = 0;
    $isCart = is_array($items) && array_is_list($items) && count($items) <= ITEMS_MAX;
    foreach ($isCart ? $items : [] as $item) {
        [$id, $quantity] = [$item['id'] ?? null, $item['quantity'] ?? null];
        $isSold = is_string($id) && isset(PRICES[$id]);
        if (!$isSold || !is_int($quantity) || $quantity < 1 || $quantity > QUANTITY_MAX) {
            $amount = 0;
            break;
        }
        // The total is ours; whatever the page says about it is not read.
        $amount += PRICES[$id] * $quantity;
    }
    if ($amount === 0) {
        $told = 'items is a list of 1 to %d { id, quantity }; a quantity is 1 to %d';
        return [422, ['message' => sprintf($told, ITEMS_MAX, QUANTITY_MAX)]];
    }
    $bytes = random_bytes(16);
    // Version 4, variant 1.
    $bytes[6] = chr(ord($bytes[6]) & 0x0f | 0x40);
    $bytes[8] = chr(ord($bytes[8]) & 0x3f | 0x80);
    $uuid = vsprintf('%s%s-%s-%s-%s-%s%s%s', str_split(bin2hex($bytes), 4));
    $id = "order_$uuid";
    $db->prepare("insert into orders values (?, 'PEN', ?, null)")->execute([$id, $amount]);
    $urls = ['returnUrl' => "$shop/success", 'cancelUrl' => "$shop/cancelled", 'webhookUrl' => "$shop/api/svc/webhook"];
    $asked = [
        'externalTransactionId' => $id,
        'clientId' => 'guest',
        'applicationUUID' => $application,
        'name' => 'Compra',
        'amount' => $amount,
        'quantity' => 1,
        'additionalInfo' => json_encode($urls),
    ];
    try {
        $reference = service('/svcpartner/createPaymentOrder', $asked)['referenceNumber'];
    } catch (Throwable $fault) {
        error_log("$id: " . $fault->getMessage());
        $code = $fault->getCode();
        if ($code < 400 || $code >= 500 || $code === 408 || $code === 429) {
            return [502, ['message' => 'the payment service cannot be reached; try again']];
        }
        // Only now is it sure that nobody can pay it: give the stock back.
        $db->prepare("update orders set status = 'CAN' where external_transaction_id = ? and status = 'PEN'")
            ->execute([$id]);
        return [502, ['message' => 'the payment service does not take this order; the log says why']];
    }
    $db->prepare('update orders set reference_number = ? where external_transaction_id = ?')
        ->execute([$reference, $id]);
    return [200, ['referenceNumber' => $reference, 'externalTransactionId' => $id]];
}

function webhook(string $body, array $secrets): array
{
    // The raw bytes, before any parser; an absent header counts as empty.
    $given = $_SERVER['HTTP_X_SVC_CONTENT_TOKEN'] ?? '';
    $ours = fn (string $secret): bool => hash_equals(hash_hmac('sha256', $body, $secret), $given);
    if (!array_filter($secrets, $ours)) {
        error_log('a webhook with another signature: is SVC_WEBHOOK_SECRET that of this application?');
        return [401, []];
    }
    $told = json_decode($body, true);
    $event = $told['event'] ?? null;
    $data = $told['data'] ?? null;
    $text = fn (string $key): bool => is_string($data[$key] ?? null);
    $whole = $text('externalTransactionId') && $text('referenceNumber') && is_int($data['amount'] ?? null)
        // The status may be anything: one we do not know changes nothing.
        && array_key_exists('paymentStatus', $data);
    if (!is_string($event) || ($event === 'payment' && !$whole)) {
        return [422, []];
    }
    if ($event === 'payment') {
        apply(open(), $data);
    } else {
        error_log("$event is no event we know");
    }
    return [200, ['received' => true]];
}

function read(PDO $db, string $id): ?array
{
    $found = $db->prepare('select external_transaction_id as externalTransactionId, status,
        reference_number as referenceNumber, amount from orders where external_transaction_id = ?');
    $found->execute([$id]);
    return $found->fetch(PDO::FETCH_ASSOC) ?: null;
}

function status(PDO $db, string $id, string $application): array
{
    $order = read($db, $id);
    if ($order === null) {
        return [404, ['message' => 'there is no such order']];
    }
    if ($order['status'] === 'PEN' && $order['referenceNumber']) {
        $query = http_build_query(['externalTransactionId' => $id, 'applicationUUID' => $application]);
        try {
            $told = service("/svcpartner/paymentByExternalTransaction?$query");
        } catch (Throwable $fault) {
            // What the service cannot tell now, it tells by its webhook.
            error_log("$id: " . $fault->getMessage());
            return [200, $order];
        }
        apply($db, $told);
    }
    return [200, read($db, $id)];
}

$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
$asked = $_SERVER['REQUEST_METHOD'] . ' ' . $path;
// Where payers begin, and where they come back to.
if (in_array($asked, ['GET /', 'GET /success', 'GET /pending', 'GET /cancelled'], true)) {
    header('Content-Type: text/html');
    $given = ['{{SVC_BASE_URL}}' => rtrim(getenv('SVC_BASE_URL'), '/'), '{{SVC_PUBLISHABLE_KEY}}' => getenv('SVC_PUBLISHABLE_KEY')];
    exit(strtr(file_get_contents(__DIR__ . '/../page.html'), $given));
}
$body = file_get_contents('php://input', false, null, 0, BODY_BYTES_MAX + 1);
try {
    [$code, $reply] = match (true) {
        strlen($body) > BODY_BYTES_MAX => [413, []],
        $asked === 'POST /api/svc/create-order' => createOrder(open(), $body, $application, $shop),
        $asked === 'POST /api/svc/webhook' => webhook($body, $secrets),
        $path === '/api/svc/webhook' => [405, []],
        preg_match('#^GET /api/svc/order/([^/]+)/status$#', $asked, $id) === 1 =>
            status(open(), rawurldecode($id[1]), $application),
        default => [404, []],
    };
} catch (Throwable $fault) {
    // Whatever it was, it is not done: a webhook comes again.
    error_log($fault->getMessage());
    [$code, $reply] = [503, ['message' => 'not possible at the moment; try again']];
}
http_response_code($code);
if ($code === 405) {
    header('Allow: POST');
}
header('Content-Type: application/json');
echo json_encode((object) $reply);
