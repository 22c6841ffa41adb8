import { BracketCall } from './bracket-call.js'
import type { CallSyntax } from './call-syntax.js'
import { TagCall } from './tag-call.js'
import type { ToolTypes } from './tool-types.js'

/** How one call is forced, around its arguments as JSON. */
export interface CallShape {
  readonly before: (name: string) => string
  readonly after: string
}

/** How the models of one family write their calls. */
export interface ToolFamily {
  readonly name: string
  /** What opens a call anywhere in the answer. */
  readonly marks: readonly string[]
  /** What may stand between the marks and is a token of its own, which is not shown otherwise. */
  readonly inner: readonly string[]
  /** A call may also be all of the answer, as an object without any mark. */
  readonly bare: boolean
  readonly syntax: (types: ToolTypes) => CallSyntax
  /** `tags`: each argument has a tag, so there is no JSON around it. */
  readonly shape: CallShape | 'tags'
  /** What stands around and between several calls; null where the family writes one. */
  readonly several: { readonly before: string, readonly between: string, readonly after: string } | null
}

const object = (name: string, key: string): string => `{"name": ${JSON.stringify(name)}, "${key}": `

const tags = {
  marks: ['<tool_call>', '<function='], inner: ['</tool_call>'], bare: false, syntax: types => new TagCall(types),
  several: { before: '', between: '\n', after: '' }
} as const satisfies Partial<ToolFamily>
const brackets = { marks: ['[TOOL_CALLS]'], inner: ['[ARGS]', '[CALL_ID]'], bare: false, syntax: () => new BracketCall() } as const satisfies Partial<ToolFamily>
const bare = { inner: [], bare: true, several: null, syntax: types => new TagCall(types) } as const satisfies Partial<ToolFamily>

export const toolFamilies = {
  /** Hermes, Qwen and many that were trained like them. */
  hermes: { name: 'hermes', ...tags, shape: { before: name => `<tool_call>\n${object(name, 'arguments')}`, after: '}\n</tool_call>' } },
  qwenCoder: { name: 'qwen-coder', ...tags, shape: 'tags' },
  mistral: {
    name: 'mistral', ...brackets, shape: { before: name => object(name, 'arguments'), after: '}' },
    several: { before: '[TOOL_CALLS][', between: ', ', after: ']' }
  },
  mistralArgs: {
    name: 'mistral-args', ...brackets, shape: { before: name => `[TOOL_CALLS]${name}[ARGS]`, after: '' },
    several: { before: '', between: '', after: '' }
  },
  llama3: { name: 'llama-3', ...bare, marks: ['<|python_tag|>'], shape: { before: name => object(name, 'parameters'), after: '}' } },
  generic: { name: 'generic', ...bare, marks: [], shape: { before: name => object(name, 'arguments'), after: '}' } }
} as const satisfies Readonly<Record<string, ToolFamily>>

/** The family whose words a template uses. Pure. */
export function familyOf (template: string): ToolFamily {
  if (template.includes('<function=') && template.includes('<parameter=')) return toolFamilies.qwenCoder
  if (template.includes('<tool_call>')) return toolFamilies.hermes
  if (template.includes('[TOOL_CALLS]')) return template.includes('[ARGS]') ? toolFamilies.mistralArgs : toolFamilies.mistral
  if (template.includes('<|python_tag|>') || (template.includes('<|start_header_id|>') && template.includes('"parameters": '))) return toolFamilies.llama3
  return toolFamilies.generic
}
