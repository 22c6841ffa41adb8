import { configDefaults } from '../banks/config.js'

const anyOrNull = { default: null }

/** The JSON schema of a bank template, for editors that write one. Pure. */
export function templateSchema (): Record<string, unknown> {
  const nullable = (type: string): object => ({ anyOf: [{ type }, { type: 'null' }], default: null })
  const config = Object.fromEntries(Object.entries(configDefaults).map(([name, preset]) => {
    if (name.startsWith('disposition_')) return [name, { anyOf: [{ type: 'integer', minimum: 1, maximum: 5 }, { type: 'null' }], default: null }]
    if (typeof preset === 'boolean') return [name, nullable('boolean')]
    if (typeof preset === 'number') return [name, nullable(Number.isInteger(preset) ? 'integer' : 'number')]
    return [name, typeof preset === 'string' || /(mission|instructions|default_strategy)$/.test(name) ? nullable('string') : anyOrNull]
  }))
  const texts = { type: 'array', items: { type: 'string' }, default: [] }
  return {
    $defs: {
      BankTemplateConfig: { type: 'object', title: 'BankTemplateConfig', properties: config },
      BankTemplateDirective: {
        type: 'object', title: 'BankTemplateDirective', required: ['name', 'content'],
        properties: {
          name: { type: 'string' }, content: { type: 'string' }, priority: { type: 'integer', default: 0 },
          is_active: { type: 'boolean', default: true }, tags: texts
        }
      },
      BankTemplateMentalModel: {
        type: 'object', title: 'BankTemplateMentalModel', required: ['id', 'name', 'source_query'],
        properties: {
          id: { type: 'string' }, name: { type: 'string' }, source_query: { type: 'string' }, tags: texts,
          max_tokens: { type: 'integer', default: 2048 }, trigger: { type: 'object' }
        }
      }
    },
    type: 'object',
    title: 'BankTemplateManifest',
    required: ['version'],
    properties: {
      version: { type: 'string', const: '1' },
      bank: { anyOf: [{ $ref: '#/$defs/BankTemplateConfig' }, { type: 'null' }], default: null },
      mental_models: { anyOf: [{ type: 'array', items: { $ref: '#/$defs/BankTemplateMentalModel' } }, { type: 'null' }], default: null },
      directives: { anyOf: [{ type: 'array', items: { $ref: '#/$defs/BankTemplateDirective' } }, { type: 'null' }], default: null }
    }
  }
}
