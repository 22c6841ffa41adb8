import { needBank } from '../store/bank-table.js'
import { BANK, json, type WireRoute } from '../wire/answer.js'
import { bool, optional, readBody, readQuery } from '../wire/shape.js'
import { applyTemplate, manifest, templateOf } from './template.js'
import { templateSchema } from './template-schema.js'

export const routes: readonly WireRoute[] = [
  { method: 'GET', path: `${BANK}/export`, handler: ({ core, params }) => json(templateOf(core, needBank(core.store, params.bank_id!))) },
  {
    method: 'POST',
    path: `${BANK}/import`,
    handler: ({ core, params, query, body, headers, ignored }) => {
      const { dry_run: isDry } = readQuery(query, ignored, { dry_run: optional(bool, false) })
      return json(applyTemplate(core, params.bank_id!, readBody(body, headers, ignored, manifest), isDry))
    }
  },
  { method: 'GET', path: '/v1/bank-template-schema', handler: () => json(templateSchema()) }
]
