import { definePlugin } from 'svc-gateway/plugin'
import { capabilitiesFile } from './capabilities-file.js'
import { selectionError } from './errors.js'
import { capabilityChoices, capabilityChoicesRef } from './ref.js'

/** capabilities.toml: what serves each capability. */
export default definePlugin({
  name: 'capabilities',
  kind: 'service',
  apiVersion: 1,
  errors: selectionError,
  provides: [capabilityChoicesRef],
  register (ctx) {
    ctx.addConfigFile(capabilitiesFile)
    ctx.provide(capabilityChoicesRef, capabilityChoices)
  }
})
