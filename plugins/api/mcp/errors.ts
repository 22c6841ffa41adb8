import { defineErrors } from 'svc-gateway/plugin'

export const mcpError = defineErrors('mcp', {
  id_reserved: { status: 409, when: 'the id of a tool server belongs to the gateway' },
  bundled: { status: 409, when: 'a tool server of the gateway itself cannot be changed' },
  body_invalid: { status: 400, when: 'the request for a tool server is not what the route expects' },
  manifest_invalid: { status: 400, when: 'the manifest of a tool server is invalid' },
  env_invalid: { status: 400, when: 'the environment of a tool server is not an object of variables' },
  enabled_invalid: { status: 400, when: '`enabled` of a tool server is neither true nor false' }
})
