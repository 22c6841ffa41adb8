import { svcError, type ToolCaller, type ToolCatalogue } from 'svc-gateway/plugin'
import { AdminResources } from './resources.js'

interface Prompt {
  readonly title: string
  readonly description: string
  readonly arguments: ReadonlyArray<{ readonly name: string, readonly description: string, readonly required?: boolean }>
}

const prompts: Readonly<Record<string, Prompt>> = {
  set_up_coding_model: {
    title: 'Set up a coding model',
    description: 'Finds a programming model that fits this machine, and starts it',
    arguments: [{ name: 'wish', description: 'What matters, such as speed, quality or a language' }]
  },
  why_is_slot_failing: {
    title: 'Why is this slot failing?',
    description: 'Finds out why a slot does not serve, and how to fix it',
    arguments: [{ name: 'slot', description: 'Name of the slot', required: true }]
  }
}

export class AdminPrompts {
  readonly #resources: AdminResources

  constructor (tools: ToolCatalogue, slots: () => readonly string[]) {
    this.#resources = new AdminResources(tools, slots)
  }

  get count (): number {
    return Object.keys(prompts).length
  }

  list (): object {
    return { prompts: Object.entries(prompts).map(([name, prompt]) => ({ name, ...prompt })) }
  }

  async get (name: string, args: Readonly<Record<string, unknown>>, caller: ToolCaller): Promise<object> {
    const prompt = Object.hasOwn(prompts, name) ? prompts[name]! : null
    if (prompt === null) throw svcError('validation.invalid', `there is no prompt '${name}'; there are ${Object.keys(prompts).join(', ')}`)
    const missing = prompt.arguments.find(({ name: argument, required }) => required === true && typeof args[argument] !== 'string')
    if (missing !== undefined) throw svcError('validation.invalid', `the prompt ${name} needs '${missing.name}'`, { param: missing.name })
    const messages = name === 'set_up_coding_model' ? coding(String(args.wish ?? '')) : await this.#failing(String(args.slot), caller)
    return { description: prompt.description, messages }
  }

  async #failing (slot: string, caller: ToolCaller): Promise<readonly object[]> {
    const uri = `svc://slots/${slot}`
    const state = await this.#resources.value(uri, caller)
    return [
      user({ type: 'text', text: `Slot ${slot} of the gateway does not do what it should. Its state follows. Tell me in one sentence why, then what would help, the least change first. ` +
        'Read its log with slot_logs only if its state does not say enough. Change nothing before I agree.' }),
      user({ type: 'resource', resource: { uri, mimeType: 'application/json', text: JSON.stringify(state) } })
    ]
  }
}

function coding (wish: string): readonly object[] {
  return [user({
    type: 'text',
    text: `I want a model for programming on this machine.${wish === '' ? '' : ` What matters to me: ${wish}.`} ` +
      'Look at the memory and devices (hardware_probe, gpu_target_version) and at what is here already (slot_list, model_list). ' +
      'Then choose from model_catalogue what fits, and tell me which one and why, with its size. When I agree: pull it (model_pull, which an operator approves; ' +
      'follow it with model_pull_status), give it to a slot (model_assign, or slot_create where there is none), start it with slot_load, and check with slot_status that it serves.'
  })]
}

function user (content: object): object {
  return { role: 'user', content }
}
