import { definePlugin } from 'svc-gateway/plugin'
import { stackCatalog, stackCatalogRef } from './ref.js'
import { stacksFile } from './stacks-file.js'

/** stacks.toml, and the stacks of the release. */
export default definePlugin({
  name: 'stack-catalog',
  kind: 'service',
  apiVersion: 1,
  provides: [stackCatalogRef],
  register (ctx) {
    ctx.addConfigFile(stacksFile)
    ctx.provide(stackCatalogRef, stackCatalog)
  }
})
