import { defineErrors } from 'svc-gateway/plugin'

export const mcpError = defineErrors('mcp', {
  id_reserved: { status: 409, when: 'the id of a tool server belongs to the gateway' },
  bundled: { status: 409, when: 'a tool server of the gateway itself cannot be changed' },
  body_invalid: { status: 400, when: 'what is to be done with a tool server is not said as the route wants it' },
  manifest_invalid: { status: 400, when: 'a tool server cannot be what its manifest says' },
  env_invalid: { status: 400, when: 'the environment of a tool server is no object of variables' },
  enabled_invalid: { status: 400, when: 'whether a tool server is enabled is neither true nor false' }
})
