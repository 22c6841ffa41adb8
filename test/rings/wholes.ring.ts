import { runGroup } from '../group.js'
import { WHOLE } from '../whole.js'

process.env[WHOLE] = '1'

/** Of their long tables `npm test` tries a part, and it lends an environment of Python the pip of the machine. */
await runGroup([
  'chaos/storm', 'kernel/config/change', 'kernel/slots/gpu/gpu-kill', 'kernel/slots/replicas/replica-kill', 'plugins/api/services',
  'plugins/api/stacks/crash', 'plugins/api/stacks/sequences', 'plugins/services/memory/foreign-banks', 'plugins/services/memory-engine/cancelled',
  'plugins/services/memory-engine/killed-steps'
].map(name => `${name}.test.js`))
