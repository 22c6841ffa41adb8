import { createHmac } from 'node:crypto'
import { core, definePlugin, svcError, type ToolCaller, type ToolContent, type ToolEntry, type ToolSource } from '../../../kernel/contract/index.js'

/** One red dot, and a sound of no length. */
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='
const WAV = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA='

let changed = (): void => {}

type Call = (args: Readonly<Record<string, unknown>>, caller: ToolCaller) => unknown

const text = (words: string): object => ({ type: 'text', text: words })
const image = { type: 'image', data: PNG, mimeType: 'image/png' }
const resource = (uri: string, words: string): object => ({ type: 'resource', resource: { uri, mimeType: 'text/plain', text: words } })
const said = (words: string): object => ({ content: [text(words)] })

/** Questions for the client's user, model and files. */
const form = (message: string, key: string, type = 'string'): object => ({
  method: 'elicitation/create', params: { message, requestedSchema: { type: 'object', properties: { [key]: { type } }, required: [key] } }
})
const sampled = (words: string): object => ({
  method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: text(words) }], maxTokens: 100 }
})
const roots = { method: 'roots/list', params: {} }

const sign = (state: string): string => `${state}.${createHmac('sha256', 'conformance').update(state).digest('base64url')}`
const isSigned = (state: string | undefined): boolean => state !== undefined && sign(state.slice(0, state.lastIndexOf('.'))) === state

type Requests = Readonly<Record<string, object>>

/** Asks for what is missing, and answers once it is there. */
const asking = (requests: Requests, answer: (given: Readonly<Record<string, unknown>>) => object, state?: string): Call =>
  (_, { wire }) => {
    const { inputResponses: given = {}, requestState } = wire!
    if (requestState !== undefined && !isSigned(requestState)) throw refused('the state was changed on its way')
    const isComplete = Object.keys(requests).every(key => typeof given[key] === 'object' && given[key] !== null)
    if (isComplete && (state === undefined || isSigned(requestState))) return answer(given)
    return { resultType: 'input_required', inputRequests: requests, ...(state === undefined ? {} : { requestState: sign(state) }) }
  }

const refused = (why: string): Error => svcError('mcp.unknown_tool', why)

const calls: Readonly<Record<string, Call>> = {
  test_simple_text: () => said('This is a simple text response for testing.'),
  test_image_content: () => ({ content: [image] }),
  test_audio_content: () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
  test_embedded_resource: () => ({ content: [resource('test://embedded-resource', 'This is an embedded resource content.')] }),
  test_multiple_content_types: () => {
    const mixed = resource('test://mixed-content-resource', '{"test":"data","value":123}')
    return { content: [text('Multiple content types test:'), image, mixed] }
  },
  test_error_handling: () => ({ ...said('This tool intentionally returns an error for testing'), isError: true }),
  test_tool_with_logging: (_, { wire }) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) wire!.notify('notifications/message', { level: 'info', data })
    return said('logged')
  },
  test_tool_with_progress: (_, { progress }) => {
    for (const step of [1, 50, 100]) progress?.(`step ${step}`, step, 100)
    return said('progressed')
  },
  test_sampling: () => ({ ...said('this server asks its client nothing'), isError: true }),
  test_elicitation: () => ({ ...said('this server asks its client nothing'), isError: true }),
  test_reconnection: () => said('done'),
  json_schema_2020_12_tool: args => said(JSON.stringify(args)),
  // the protocol's package refuses what its client did not say that it can
  test_missing_capability: () => ({ resultType: 'input_required', inputRequests: { greeting: sampled('Generate a greeting') } }),
  test_streaming_elicitation: (_, { wire }) => {
    wire!.notify('notifications/message', { level: 'info', data: 'before the question' })
    return { resultType: 'input_required', inputRequests: { user_name: form('What is your name?', 'name') } }
  },
  test_logging_tool: (_, { wire }) => {
    wire!.notify('notifications/message', { level: 'info', data: 'nobody asked for this' })
    return said('logged')
  },
  test_trigger_tool_change: () => {
    changed()
    return said('changed')
  },
  test_trigger_prompt_change: () => {
    changed()
    return said('changed')
  },
  test_input_required_result_elicitation: asking({ user_name: form('What is your name?', 'name') }, ({ user_name: given }) =>
    said(`Hello, ${String((given as { content?: { name?: string } }).content?.name)}!`)),
  test_input_required_result_sampling: asking({ capital_question: sampled('What is the capital of France?') }, given => said(JSON.stringify(given))),
  test_input_required_result_list_roots: asking({ client_roots: roots }, given => said(JSON.stringify(given))),
  test_input_required_result_request_state: asking({ confirm: form('Please confirm', 'ok', 'boolean') }, () => said('state-ok'), 'confirm'),
  test_input_required_result_tampered_state: asking({ confirm: form('Please confirm', 'ok', 'boolean') }, () => said('state-ok'), 'tamper'),
  test_input_required_result_multiple_inputs: asking({
    user_name: form('What is your name?', 'name'), greeting: sampled('Generate a greeting'), client_roots: roots
  }, given => said(JSON.stringify(given)), 'several'),
  test_input_required_result_multi_round: (args, caller) => {
    const isSecond = caller.wire!.requestState?.startsWith('round') === true
    const step = isSecond
      ? asking({ step2: form('Step 2: What is your favorite color?', 'color') }, () => said('done'), 'round-2')
      : asking({ step1: form('Step 1: What is your name?', 'name') }, () => said('done'), 'round-1')
    return step(args, caller)
  },
  test_input_required_result_capabilities: (args, caller) => {
    const { clientCapabilities: can } = caller.wire!
    const requests = {
      ...('elicitation' in can ? { user_name: form('What is your name?', 'name') } : {}),
      ...('sampling' in can ? { greeting: sampled('Generate a greeting') } : {})
    }
    return asking(requests, given => said(JSON.stringify(given)))(args, caller)
  }
}

const shape = (properties: object = {}): ToolEntry['inputSchema'] => ({ type: 'object', properties })

const withDefinitions = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  ...shape({ name: { type: 'string' }, address: { $ref: '#/$defs/address' } }),
  $defs: { address: { type: 'object', properties: { street: { type: 'string' } } } },
  additionalProperties: false
}

const prompts: Readonly<Record<string, readonly string[]>> = {
  test_simple_prompt: [],
  test_prompt_with_arguments: ['arg1', 'arg2'],
  test_prompt_with_embedded_resource: ['resourceUri'],
  test_prompt_with_image: [],
  test_input_required_result_prompt: []
}

const listedPrompt = ([name, args]: readonly [string, readonly string[]]): object =>
  ({ name, description: name, arguments: args.map(arg => ({ name: arg, description: arg, required: true })) })

function promptOf (name: string, args: Readonly<Record<string, unknown>>, caller: ToolCaller): unknown {
  const user = (content: object): object => ({ role: 'user', content })
  switch (name) {
    case 'test_prompt_with_arguments': return { messages: [user(text(`Prompt with arguments: arg1='${String(args.arg1)}', arg2='${String(args.arg2)}'`))] }
    case 'test_prompt_with_embedded_resource': return { messages: [user(resource(String(args.resourceUri), 'Embedded resource content for testing.')), user(text('Please process it.'))] }
    case 'test_prompt_with_image': return { messages: [user(image), user(text('Please analyze the image above.'))] }
    case 'test_input_required_result_prompt':
      return asking({ user_context: form('What context should the prompt use?', 'context') }, given => ({ messages: [user(text(JSON.stringify(given)))] }))({}, caller)
    default: return { messages: [user(text('This is a simple prompt for testing.'))] }
  }
}

function resourceOf (uri: string): object {
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1]
  if (id !== undefined) return { uri, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }
  if (uri === 'test://static-binary') return { uri, mimeType: 'image/png', blob: PNG }
  if (uri === 'test://static-text' || uri === 'test://watched-resource') return { uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }
  throw svcError('mcp.unknown_resource', `there is no resource ${uri}`)
}

const source: ToolSource = {
  id: 'conformance',
  title: 'Conformance',
  description: 'What the conformance suite of the protocol asks of a server',
  parts: { resources: true, subscriptions: true, prompts: true, completions: true, logging: true },
  tools: () => Object.keys(calls).map(name => ({
    name,
    title: null,
    description: name,
    inputSchema: name === 'json_schema_2020_12_tool' ? withDefinitions : shape(),
    outputSchema: null,
    gated: false,
    primary: null,
    secrets: [],
    annotations: {}
  })),
  onChange: listener => {
    changed = listener
    return () => {}
  },
  call: async (name, args, caller) => await calls[name]!(args, caller) as ToolContent,
  request: async (method, params, caller) => {
    switch (method) {
      case 'resources/list': return { resources: ['static-text', 'static-binary', 'watched-resource'].map(name => ({ uri: `test://${name}`, name })) }
      case 'resources/templates/list': return { resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template' }] }
      case 'resources/read': return { contents: [resourceOf(String(params.uri))] }
      case 'prompts/list':
        return { prompts: Object.entries(prompts).map(listedPrompt) }
      case 'prompts/get': return promptOf(String(params.name), (params.arguments ?? {}) as Record<string, unknown>, caller)
      case 'completion/complete': return { completion: { values: ['one'], total: 1, hasMore: false } }
      default: return {}
    }
  }
}

/** `/mcp/conformance`. */
export const conformanceServer = definePlugin({
  name: 'conformance-server',
  kind: 'service',
  apiVersion: 1,
  requires: { tools: core.tools },
  register: ({ services: { tools } }) => { tools.addServer(source) }
})
