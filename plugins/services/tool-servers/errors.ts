import { defineErrors } from 'svc-gateway/plugin'

export const mcpError = defineErrors('mcp', {
  server_disabled: { status: 409, when: 'the tool server is disabled' },
  secret_missing: { status: 409, when: 'a tool server needs a secret that api.env does not have' },
  server_failed: { status: 502, heals: true, when: 'the tool server cannot be started or reached, or failed recently and is not retried for a while' },
  server_ended: { status: 502, heals: true, when: 'the tool server ended or disconnected during a call' },
  server_refused: { status: 502, when: 'the tool server requires a token from the gateway, or rejects the one it has' },
  call_timeout: { status: 504, heals: true, when: 'the tool server was silent during a call for longer than configured' },
  answer_too_large: { status: 502, when: 'the answer of the tool server exceeds the size or nesting limit' },
  input_required: { status: 501, when: 'the tool asks its caller for input, which the gateway does not pass on' },
  spec_unsupported: { status: 400, when: 'the gateway cannot run or reach tool servers of this kind' },
  url_required: { status: 400, when: 'no address or spec of a tool server is given' },
  url_too_long: { status: 400, when: 'the address or spec of a tool server is too long' },
  url_invalid: { status: 400, when: 'the address of a tool server is not a usable URL' },
  ssrf_blocked: { status: 400, when: 'the address of a manifest is not on the public internet' },
  manifest_fetch_failed: { status: 400, when: 'there is no manifest of a tool server at the address' },
  catalog_failed: { status: 502, heals: true, when: 'the registry of tool servers cannot be read' }
})
