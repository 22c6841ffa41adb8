import { ArgumentTags } from './argument-tags.js'
import { BracketCall } from './bracket-call.js'
import type { CallSyntax } from './call-syntax.js'
import { channelMarks } from './channel-reader.js'
import { SectionCalls, type SectionWords } from './section-calls.js'
import { TagCall } from './tag-call.js'
import type { ToolTypes } from './tool-types.js'

/** How one call is forced, around its arguments as JSON. */
export interface CallShape {
  readonly before: (name: string) => string
  readonly after: string
}

/** How one call is forced where each argument has a tag, so that there is no JSON around it. */
export interface TagShape {
  readonly before: (name: string) => string
  readonly beforeValue: (key: string) => string
  readonly afterValue: string
  readonly between: string
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
  /** The syntax reads the mark itself. */
  readonly keepsMark?: boolean
  /** All of an answer is in messages, each with a head that names its channel. */
  readonly channels?: boolean
  readonly shape: CallShape | TagShape
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

const deepseekWords: SectionWords = {
  opens: ['<｜tool▁calls▁begin｜>'], closes: ['<｜tool▁calls▁end｜>'], call: '<｜tool▁call▁begin｜>', behindHead: '<｜tool▁sep｜>',
  closeCall: '<｜tool▁call▁end｜>', nameOf: head => head === 'function' ? null : head
}
const kimiWords: SectionWords = {
  opens: ['<|tool_calls_section_begin|>', '<|tool_call_section_begin|>'], closes: ['<|tool_calls_section_end|>', '<|tool_call_section_end|>'],
  call: '<|tool_call_begin|>', behindHead: '<|tool_call_argument_begin|>', closeCall: '<|tool_call_end|>',
  nameOf: head => head.replace(/^functions\./, '').replace(/:\d+$/, '')
}

function section (words: SectionWords): Pick<ToolFamily, 'marks' | 'inner' | 'bare' | 'syntax' | 'keepsMark'> {
  const { opens, closes, call, behindHead, closeCall } = words
  const inner = [...closes, behindHead, closeCall]
  return { marks: [...opens, call], inner, bare: false, keepsMark: true, syntax: () => new SectionCalls(words) }
}

const deepseek = { before: '<｜tool▁calls▁begin｜>', between: '', after: '<｜tool▁calls▁end｜>' }

export const toolFamilies = {
  /** Hermes, Qwen and many that were trained like them. */
  hermes: { name: 'hermes', ...tags, shape: { before: name => `<tool_call>\n${object(name, 'arguments')}`, after: '}\n</tool_call>' } },
  qwenCoder: {
    name: 'qwen-coder', ...tags, shape: {
      before: name => `<tool_call>\n<function=${name}>\n`, beforeValue: key => `<parameter=${key}>\n`, afterValue: '\n</parameter>',
      between: '\n', after: '</function>\n</tool_call>'
    }
  },
  glm: {
    name: 'glm', marks: ['<tool_call>'], inner: ['</tool_call>', '<arg_key>', '</arg_key>', '<arg_value>', '</arg_value>'], bare: false,
    syntax: types => new ArgumentTags(types), several: { before: '', between: '\n', after: '' }, shape: {
      before: name => `<tool_call>${name}\n`, beforeValue: key => `<arg_key>${key}</arg_key>\n<arg_value>`, afterValue: '</arg_value>',
      between: '\n', after: '</tool_call>'
    }
  },
  /** DeepSeek V3 and R1, which write arguments in a fence of code. */
  deepseek3: {
    name: 'deepseek-3', ...section(deepseekWords), several: { ...deepseek, between: '\n' },
    shape: { before: name => `<｜tool▁call▁begin｜>function<｜tool▁sep｜>${name}\n\`\`\`json\n`, after: '\n```<｜tool▁call▁end｜>' }
  },
  /** DeepSeek V3.1 and later. */
  deepseek31: {
    name: 'deepseek-3.1', ...section(deepseekWords), several: deepseek,
    shape: { before: name => `<｜tool▁call▁begin｜>${name}<｜tool▁sep｜>`, after: '<｜tool▁call▁end｜>' }
  },
  kimi: {
    // its calls are numbered, so one is forced
    name: 'kimi', ...section(kimiWords), several: null, shape: {
      before: name => `<|tool_calls_section_begin|><|tool_call_begin|>functions.${name}:0<|tool_call_argument_begin|>`,
      after: '<|tool_call_end|><|tool_calls_section_end|>'
    }
  },
  /** gpt-oss. */
  harmony: {
    name: 'harmony', marks: [], inner: channelMarks, bare: false, channels: true, syntax: types => new TagCall(types), several: null,
    shape: { before: name => `<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>`, after: '' }
  },
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
  if (template.includes('<|channel|>') && template.includes('<|message|>')) return toolFamilies.harmony
  if (template.includes('<｜tool▁calls▁begin｜>')) return template.includes('```json') ? toolFamilies.deepseek3 : toolFamilies.deepseek31
  if (template.includes('<|tool_calls_section_begin|>')) return toolFamilies.kimi
  if (template.includes('<arg_key>')) return toolFamilies.glm
  if (template.includes('<tool_call>')) return toolFamilies.hermes
  if (template.includes('[TOOL_CALLS]')) return template.includes('[ARGS]') ? toolFamilies.mistralArgs : toolFamilies.mistral
  if (template.includes('<|python_tag|>') || (template.includes('<|start_header_id|>') && template.includes('"parameters": '))) return toolFamilies.llama3
  return toolFamilies.generic
}
