import { svcSchemaWith } from '../../kernel/contract/index.js'
import { settingsTables } from '../../plugins/index.js'

/** Of svc.toml, as a gateway of this release reads it. */
export const svcSchema = svcSchemaWith(settingsTables)
