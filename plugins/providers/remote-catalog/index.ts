import { definePlugin } from 'svc-gateway/plugin'
import { templates } from './templates.js'

/** Makers whose models the gateway can ask for, for rows of providers.toml to name. See README.md. */
export default definePlugin({
  name: 'remote-catalog',
  kind: 'provider',
  apiVersion: 1,
  register (ctx) {
    for (const template of templates) ctx.addUpstreamTemplate(template)
  }
})
