#!/usr/bin/env bash
# The calls of automation-tool.md, as an automation tool makes them: plain HTTP with a URL, headers and a body.
# RAPPORT_URL, RAPPORT_PROJECT, RAPPORT_TOKEN and RAPPORT_INGEST_KEY say where to; HOOK_URL is the tool's own webhook URL.
set -euo pipefail

json=(-H "Content-Type: application/json")
token=(-H "Authorization: Bearer $RAPPORT_TOKEN")
# --fail-with-body: an error ends the flow, and its problem document is shown.
call() { curl --silent --show-error --fail-with-body "$@" && echo; }

# 1. A form was filled in: create or update the account. The key makes a repeated run of the flow harmless.
call "$RAPPORT_URL/api/accounts/upsert-by-imported-id/" "${token[@]}" "${json[@]}" \
    -H "Idempotency-Key: form-entry-5521" -d '{
        "project": "'"$RAPPORT_PROJECT"'", "imported_id": "form-5521", "name": "Havn Logistikk",
        "status": "contacted", "status_policy": "forward", "custom_fields": {"source": "website form"}}'

# 2. Something happened in another tool: report it as activity. The id makes a repeated run harmless here.
call "$RAPPORT_URL/api/pulse/ingest/" -H "X-Service-Ingest-Key: $RAPPORT_INGEST_KEY" "${json[@]}" -d '{
        "events": [{"imported_id": "form-5521", "kind": "trial_started", "event_id": "calendar-901"}]}'

# 3. Look something up.
call --get "$RAPPORT_URL/api/accounts/" "${token[@]}" --data-urlencode "imported_id=form-5521"

# 4. An instant trigger: Rapport calls the tool. The response has the secret to check signatures with, once.
call "$RAPPORT_URL/api/webhooks/" "${token[@]}" "${json[@]}" -d '{
        "url": "'"$HOOK_URL"'", "events": ["account.created", "account.status_changed"],
        "filters": {"to": ["customer", "in_trial"]}, "description": "Automation"}'

# 5. A polling trigger, for tools that can't be called: keep next_cursor, and send it as cursor the next time.
call --get "$RAPPORT_URL/api/events/" "${token[@]}" --data-urlencode "type=account.status_changed"
