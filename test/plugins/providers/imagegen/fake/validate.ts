import type { InputInfo, NodeInfo } from './nodes.js'

export interface GraphNode {
  readonly class_type?: string
  readonly inputs: Record<string, unknown>
  readonly _meta?: { readonly title?: string }
}
export type PromptGraph = Readonly<Record<string, GraphNode>>

export interface Fault {
  readonly type: string
  readonly message: string
  readonly details: string
  readonly extra_info: Readonly<Record<string, unknown>>
}

export interface Verdict {
  readonly valid: boolean
  readonly error: Fault | null
  /** Output nodes that run. */
  readonly outputs: readonly string[]
  readonly nodeErrors: Readonly<Record<string, { errors: readonly Fault[], dependent_outputs: string[], class_type: string }>>
}

interface Checked { readonly valid: boolean, readonly errors: readonly Fault[] }

/**
 * What the engine finds wrong with a graph before it queues it: unknown nodes first, then, from every output node
 * upwards, missing inputs, links, types, bounds and choices. A graph with one good output runs that one.
 */
export function validatePrompt (prompt: PromptGraph, table: Readonly<Record<string, NodeInfo>>): Verdict {
  const outputs: string[] = []
  for (const [id, node] of Object.entries(prompt)) {
    const type = node.class_type
    if (type === undefined) {
      return refused(fault('invalid_prompt', 'Cannot execute because a node is missing the class_type property.', `Node ID '#${id}'`, {}))
    }
    if (!Object.hasOwn(table, type)) {
      return refused(fault('invalid_prompt', `Cannot execute because node ${type} does not exist.`, `Node ID '#${id}'`, {}))
    }
    if (table[type]!.outputNode) outputs.push(id)
  }
  if (outputs.length === 0) return refused(fault('prompt_no_outputs', 'Prompt has no outputs', '', {}))

  const checked = new Map<string, Checked>()
  const good: string[] = []
  const failures: Fault[] = []
  const nodeErrors: Record<string, { errors: readonly Fault[], dependent_outputs: string[], class_type: string }> = {}
  for (const output of outputs) {
    let result: Checked
    try {
      result = checkNode(prompt, output, table, checked)
    } catch (error) {
      result = broken(error, 'exception_during_validation', 'Exception when validating node', {})
      checked.set(output, result)
    }
    if (result.valid) {
      good.push(output)
      continue
    }
    failures.push(...result.errors)
    for (const [id, { valid, errors }] of checked) {
      if (valid || errors.length === 0) continue
      const entry = nodeErrors[id] ??= { errors, dependent_outputs: [], class_type: prompt[id]!.class_type! }
      entry.dependent_outputs.push(output)
    }
  }
  if (good.length > 0) return { valid: true, error: null, outputs: good, nodeErrors }
  const details = failures.map(({ message, details }) => `${message}: ${details}`).join('\n')
  return { valid: false, error: fault('prompt_outputs_failed_validation', 'Prompt outputs failed validation', details, {}), outputs: [], nodeErrors }
}

function checkNode (
  prompt: PromptGraph, id: string, table: Readonly<Record<string, NodeInfo>>, checked: Map<string, Checked>
): Checked {
  const known = checked.get(id)
  if (known !== undefined) return known
  const node = prompt[id]!
  if ((node.inputs as unknown) === undefined) throw new PythonError('KeyError', '\'inputs\'')
  const { required, optional = {} } = table[node.class_type!]!
  const errors: Fault[] = []
  let upstreamValid = true
  for (const [name, info] of Object.entries({ ...required, ...optional })) {
    if (!Object.hasOwn(node.inputs, name)) {
      if (Object.hasOwn(required, name)) errors.push(fault('required_input_missing', 'Required input is missing', name, { input_name: name }))
      continue
    }
    const value = node.inputs[name]
    const problem = Array.isArray(value) ? null : valueFault(node, name, info)
    if (problem !== null) errors.push(problem)
    if (!Array.isArray(value)) continue
    const linked = linkFault(prompt, table, name, info, value)
    if (linked !== null) {
      errors.push(linked)
      continue
    }
    const from = value[0] as string
    try {
      if (!checkNode(prompt, from, table, checked).valid) upstreamValid = false
    } catch (error) {
      upstreamValid = false
      const linked = { input_name: name, input_config: info, exception_message: (error as Error).message, linked_node: value }
      checked.set(from, broken(error, 'exception_during_inner_validation', 'Exception when validating inner node', linked))
    }
  }
  const result = { valid: errors.length === 0 && upstreamValid, errors }
  checked.set(id, result)
  return result
}

/** Throws for a link to a node that is not there, as the engine does. */
function linkFault (
  prompt: PromptGraph, table: Readonly<Record<string, NodeInfo>>, name: string, info: InputInfo, value: readonly unknown[]
): Fault | null {
  const config = { input_name: name, input_config: info }
  if (value.length !== 2) {
    return fault('bad_linked_input', 'Bad linked input, must be a length-2 list of [node_id, slot_index]', name, { ...config, received_value: value })
  }
  const [from, slot] = value as [string, number]
  const node = prompt[from]
  if (node === undefined) throw new PythonError('KeyError', `'${from}'`)
  const received = table[node.class_type!]!.output[slot]
  if (received === undefined) throw new PythonError('IndexError', 'tuple index out of range')
  const [wanted] = info
  if (received === wanted) return null
  return fault('return_type_mismatch', 'Return type mismatch between linked nodes',
    `${name}, received_type(${received}) mismatch input_type(${String(wanted)})`, { ...config, received_type: received, linked_node: value })
}

/** Also converts the value in place, as the engine does. */
function valueFault (node: GraphNode, name: string, info: InputInfo): Fault | null {
  const [type, bounds = {}] = info
  const config = { input_name: name, input_config: info }
  let value = node.inputs[name]
  if (type === 'INT' || type === 'FLOAT') {
    const number = asNumber(type, value)
    if (typeof number === 'string') {
      return fault('invalid_input_type', `Failed to convert an input value to a ${type} value`,
        `${name}, ${String(value)}, ${number}`, { ...config, received_value: value, exception_message: number })
    }
    value = number
  } else if (type === 'STRING') value = String(value)
  else if (type === 'BOOLEAN') value = Boolean(value)
  node.inputs[name] = value
  const { min, max } = bounds as { min?: number, max?: number }
  if (min !== undefined && (value as number) < min) {
    return fault('value_smaller_than_min', `Value ${asPython(value, type)} smaller than min of ${asPython(min, type)}`, name, { ...config, received_value: value })
  }
  if (max !== undefined && (value as number) > max) {
    return fault('value_bigger_than_max', `Value ${asPython(value, type)} bigger than max of ${asPython(max, type)}`, name, { ...config, received_value: value })
  }
  if (typeof type !== 'string' && !type.includes(value as string)) {
    const tooMany = type.length > 20
    const list = tooMany ? `(list of length ${type.length})` : `[${type.map(choice => `'${choice}'`).join(', ')}]`
    return fault('value_not_in_list', 'Value not in list', `${name}: '${String(value)}' not in ${list}`,
      { input_name: name, input_config: tooMany ? null : info, received_value: value })
  }
  return null
}

/** Python's `int()` and `float()`: the number, or what they throw. */
function asNumber (type: 'INT' | 'FLOAT', value: unknown): number | string {
  if (typeof value === 'boolean') return Number(value)
  if (typeof value === 'number') return type === 'INT' ? Math.trunc(value) : value
  if (typeof value === 'string') {
    const pattern = type === 'INT' ? /^\s*[+-]?\d+\s*$/ : /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i
    if (pattern.test(value)) return Number(value)
    return type === 'INT' ? `invalid literal for int() with base 10: '${value}'` : `could not convert string to float: '${value}'`
  }
  const [wants, got] = [type === 'INT' ? 'int() argument must be a string, a bytes-like object' : 'float() argument must be a string', value === null ? 'NoneType' : 'dict']
  return `${wants} or a real number, not '${got}'`
}

class PythonError extends Error {
  readonly type: string

  constructor (type: string, message: string) {
    super(message)
    this.type = type
  }
}

function broken (error: unknown, type: string, message: string, extra: Readonly<Record<string, unknown>>): Checked {
  const thrown = { exception_type: error instanceof PythonError ? error.type : 'TypeError', traceback: [] }
  return { valid: false, errors: [fault(type, message, (error as Error).message, { ...extra, ...thrown })] }
}

/** Whole numbers of a FLOAT have a point. */
function asPython (value: unknown, type: unknown): string {
  return type === 'FLOAT' && Number.isInteger(value) ? `${String(value)}.0` : String(value)
}

function refused (error: Fault): Verdict {
  return { valid: false, error, outputs: [], nodeErrors: {} }
}

function fault (type: string, message: string, details: string, extra: Readonly<Record<string, unknown>>): Fault {
  return { type, message, details, extra_info: extra }
}
