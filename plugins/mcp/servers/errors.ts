import { defineErrors } from 'svc-gateway/plugin'

export const mcpError = defineErrors('mcp', {
  unknown_server: { status: 404, when: 'there is no tool server of this name' }
})
