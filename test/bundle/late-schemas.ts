import { parseAst } from 'rolldown/parseAst'

type Node = { readonly type: string, readonly start: number, readonly end: number } & Readonly<Record<string, unknown>>
type Edit = readonly [start: number, end: number, text: string]

/** What is not run where it stands. */
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])
/** Values that are kept by what refers to them: one that is made later would be another, or have another effect. */
const AT_ONCE = new Set(['ClassExpression', 'AssignmentExpression', 'UpdateExpression', ...FUNCTIONS])
/** What means something else in a getter. */
const OF_ITS_PLACE = new Set(['AwaitExpression', 'YieldExpression', 'ThisExpression'])
const MADE = /^(?:Set|Map|RegExp)$/
const ROUTE_MAKER = /^define(?:Route|WebSocket)(?:\$\d+)?$/

/** A file of the bundle. */
export interface Chunk {
  readonly fileName: string
  readonly exports: readonly string[]
  readonly code: string
}

/**
 * Schemas at the top of modules are made when they are first used. Most are needed by one kind of request, or by the API
 * document alone, but all of them would be made at every start and stay in memory: they are thousands. A constant becomes
 * a function that makes it once, and every mention of the constant a call; a schema in the table of a route becomes a getter.
 * Lines stay what they are, for the source maps.
 * @param schemas the chunk whose functions make schemas
 */
export function makeSchemasLate (chunks: readonly Chunk[], schemas: string): readonly Chunk[] {
  const parts = new Map<string, Part>()
  const isLateIn: Elsewhere = (file, name) => parts.get(file)?.exportsLate(name) ?? false
  for (const { fileName, code } of chunks) if (fileName !== schemas) parts.set(fileName, new Part(code, schemas, isLateIn))
  // what is made of late constants is late itself
  while ([...parts.values()].map(part => part.findLate()).includes(true));
  return chunks.map(({ fileName, exports, code }) => ({ fileName, exports, code: parts.get(fileName)?.rewritten() ?? code }))
}

/** Whether a chunk exports a late constant under that name. */
type Elsewhere = (file: string, name: string) => boolean

/** A constant at the top of a chunk. */
interface Constant {
  readonly name: string
  readonly statement: Node
  /** What makes it. */
  readonly value: Node
  /** The property of that value which it is: `const { shape } = schema`. */
  readonly property: string | null
}

class Part {
  readonly #code: string
  readonly #body: readonly Node[]
  readonly #schemas: string
  readonly #isLateIn: Elsewhere
  /** Variables that hold other chunks, by name. */
  readonly #chunks = new Map<string, string>()
  readonly #constants = new Map<string, Constant>()
  /** Names of what it exports, by the exported name. */
  readonly #exports = new Map<string, string>()
  readonly #late = new Set<string>()

  constructor (code: string, schemas: string, isLateIn: Elsewhere) {
    this.#code = code
    this.#schemas = schemas
    this.#isLateIn = isLateIn
    this.#body = (parseAst(code) as unknown as { body: Node[] }).body
    for (const statement of this.#body) this.#read(statement)
    for (const name of namesTwice(this.#body)) this.#constants.delete(name)
  }

  exportsLate (name: string): boolean {
    return this.#late.has(this.#exports.get(name) ?? '')
  }

  /** Whether there are more than were known before. */
  findLate (): boolean {
    const before = this.#late.size
    for (const { name, value } of this.#constants.values()) {
      if (!this.#late.has(name) && !AT_ONCE.has(value.type) && !makesOther(value) && this.#mentions(value)) this.#late.add(name)
    }
    return this.#late.size > before
  }

  rewritten (): string {
    const edits: Edit[] = []
    const late = [...this.#late].map(name => this.#constants.get(name)!)
    for (const constant of late) edits.push(...asFunction(constant))
    const made = new Map(late.map(({ statement, value }) => [statement, value]))
    const getters = new Set<Node>()
    const visit = (node: Node, parent: Node | null): void => {
      for (const property of routeSchemas(node)) if (this.#mentions(property.value as Node)) getters.add(property)
      // what is inside comes first: where two texts are added at one place, they are added in this order
      for (const child of made.has(node) ? [made.get(node)!] : childrenOf(node)) visit(child, node)
      if (node.type === 'Identifier' && this.#late.has(node.name as string) && isMention(node, parent)) {
        const isShort = parent?.type === 'Property' && parent.shorthand === true && !getters.has(parent)
        edits.push([node.end, node.end, isShort ? `: ${node.name as string}()` : '()'])
      }
      if (getters.has(node)) edits.push(...getter(node, this.#code))
      const exported = exportOf(node)
      if (exported !== null && this.#isLateValue(exported.value)) {
        const { start, end } = exported.value
        const opening = `Object.defineProperty(exports, "${exported.name}", { enumerable: true, get: () => `
        edits.push([node.start, start, opening], [end, end, ' })'])
      }
    }
    for (const statement of this.#body) visit(statement, null)
    if (edits.length === 0) return this.#code
    return edited(this.#code, edits) + KEPT
  }

  #read (statement: Node): void {
    const exported = exportOf(statement.expression as Node | undefined) ?? definedExportOf(statement)
    if (exported?.value.type === 'Identifier') this.#exports.set(exported.name, exported.value.name as string)
    const [declared, ...more] = statement.type === 'VariableDeclaration' ? statement.declarations as Node[] : []
    if (declared === undefined || more.length > 0) return
    const { id, init: value } = declared as unknown as { id: Node, init: Node | null }
    if (value === null) return
    if (id.type === 'Identifier') {
      const file = requiredFile(value)
      if (file !== null) this.#chunks.set(id.name as string, file)
      else this.#constants.set(id.name as string, { name: id.name as string, statement, value, property: null })
    } else if (id.type === 'ObjectPattern' && (id.properties as Node[]).length === 1) {
      const [{ type, key, value: bound }] = id.properties as [{ type: string, key: Node, value: Node }]
      if (type !== 'Property' || key.type !== 'Identifier' || bound.type !== 'Identifier') return
      this.#constants.set(bound.name as string, { name: bound.name as string, statement, value, property: key.name as string })
    }
  }

  /** Whether it needs a schema where it stands. */
  #mentions (node: Node): boolean {
    if (FUNCTIONS.has(node.type)) return false
    if (node.type === 'MemberExpression' && (node.object as Node).type === 'Identifier') {
      if (this.#chunks.get((node.object as Node).name as string) === this.#schemas) return true
    }
    if (this.#isLateValue(node)) return true
    return childrenOf(node).some(child => !(child.type === 'Identifier' && !isMention(child, node)) && this.#mentions(child))
  }

  #isLateValue (node: Node): boolean {
    if (node.type === 'Identifier') return this.#late.has(node.name as string)
    if (node.type !== 'MemberExpression' || node.computed === true) return false
    const file = this.#chunks.get((node.object as Node).name as string)
    return file !== undefined && this.#isLateIn(file, (node.property as Node).name as string)
  }
}

function asFunction ({ name, statement, value, property }: Constant): readonly Edit[] {
  return [
    [statement.start, value.start, `function ${name}() { return ${name}$made ??= (`],
    [value.end, statement.end, `)${property === null ? '' : `.${property}`} } var ${name}$made;`]
  ]
}

const KEPT = `
function __kept(table, key, value) {
  Object.defineProperty(table, key, { value, enumerable: true, configurable: true });
  return value;
}
`

/** A property of a route's `schema` as one that is made, and kept, when it is first read. */
function getter ({ start, end, key, value }: Node, code: string): readonly Edit[] {
  const { start: from, end: to } = value as Node
  const name = code.slice((key as Node).start, (key as Node).end)
  return [[start, from, `get ${name}() { return __kept(this, "${name}", `], [to, end, ') }']]
}

/** The properties of the table of schemas in a call that makes a route. */
function routeSchemas (node: Node): readonly Node[] {
  if (node.type !== 'CallExpression') return []
  const { callee, arguments: [route] } = node as unknown as { callee: Node, arguments: Node[] }
  const name = callee.type === 'MemberExpression' ? callee.property as Node : callee
  if (!ROUTE_MAKER.test(String(name.name)) || route?.type !== 'ObjectExpression') return []
  const table = (route.properties as Node[]).find(({ key }) => (key as Node | undefined)?.name === 'schema')?.value as Node | undefined
  if (table?.type !== 'ObjectExpression') return []
  return (table.properties as Node[]).filter(({ type, value }) => type === 'Property' && !has(value as Node, OF_ITS_PLACE))
}

/** Whether it is a call or an object that does more than its value tells: a plugin, an instance of a class. */
function makesOther (value: Node): boolean {
  const { callee } = value as { callee?: Node }
  if (value.type === 'NewExpression') return !MADE.test(String(callee!.name))
  const name = callee?.type === 'MemberExpression' ? callee.property as Node : callee
  return value.type === 'CallExpression' && /^(?:define[A-Z]|__exportAll$)/.test(String(name?.name))
}

function has (node: Node, types: ReadonlySet<string>): boolean {
  return types.has(node.type) || childrenOf(node).some(child => has(child, types))
}

function requiredFile (value: Node): string | null {
  if (value.type !== 'CallExpression' || (value.callee as Node).name !== 'require') return null
  const [file] = value.arguments as Node[]
  return typeof file?.value === 'string' && file.value.startsWith('./') ? file.value.slice(2) : null
}

/** `exports.name = value` */
function exportOf (node: Node | undefined): { name: string, value: Node } | null {
  if (node?.type !== 'AssignmentExpression') return null
  const { object, property } = node.left as { object?: Node, property?: Node }
  return object?.name === 'exports' ? { name: property!.name as string, value: node.right as Node } : null
}

/** `Object.defineProperty(exports, 'name', { enumerable: true, get: function () { return value } })` */
function definedExportOf (statement: Node): { name: string, value: Node } | null {
  const call = statement.expression as Node | undefined
  if (call?.type !== 'CallExpression') return null
  const [target, name, description] = call.arguments as Node[]
  if (target?.name !== 'exports' || description?.type !== 'ObjectExpression') return null
  const get = (description.properties as Node[]).find(({ key }) => (key as Node).name === 'get')?.value as { body?: { body: Node[] } } | undefined
  const value = get?.body?.body[0]?.argument as Node | undefined
  return value === undefined ? null : { name: name!.value as string, value }
}

/** Whether an identifier stands for its variable there. */
function isMention (node: Node, parent: Node | null): boolean {
  switch (parent?.type) {
    case 'MemberExpression': return parent.object === node || parent.computed === true
    case 'Property': return parent.value === node || parent.computed === true
    case 'MethodDefinition': case 'PropertyDefinition': return parent.value === node || parent.computed === true
    case 'VariableDeclarator': return parent.init === node
    case 'LabeledStatement': case 'BreakStatement': case 'ContinueStatement': return false
    default: return true
  }
}

/** Names that are declared more than once in a chunk, at its top or further in, and those that something is assigned to. */
function namesTwice (body: readonly Node[]): ReadonlySet<string> {
  const [seen, twice] = [new Set<string>(), new Set<string>()]
  const declare = (pattern: Node | null | undefined): void => {
    if (pattern === null || pattern === undefined) return
    if (pattern.type === 'Identifier') {
      const name = pattern.name as string
      if (seen.has(name)) twice.add(name)
      seen.add(name)
    } else if (pattern.type === 'Property') {
      declare(pattern.value as Node)
    } else if (pattern.type === 'AssignmentPattern') {
      declare(pattern.left as Node)
    } else if (pattern.type !== 'MemberExpression') {
      childrenOf(pattern).forEach(declare)
    }
  }
  const visit = (node: Node): void => {
    if (node.type === 'VariableDeclarator' || node.type === 'ClassDeclaration' || node.type === 'ClassExpression') declare(node.id as Node | null)
    if (FUNCTIONS.has(node.type)) [node.id as Node | null, ...node.params as Node[]].forEach(declare)
    if (node.type === 'CatchClause') declare(node.param as Node | null)
    const target = (node.type === 'AssignmentExpression' ? node.left : node.type === 'UpdateExpression' ? node.argument : null) as Node | null
    if (target?.type === 'Identifier') twice.add(target.name as string)
    childrenOf(node).forEach(visit)
  }
  body.forEach(visit)
  return twice
}

function childrenOf (node: Node): readonly Node[] {
  return Object.values(node).flat().filter((value): value is Node => typeof value === 'object' && value !== null && typeof (value as Node).type === 'string')
}

function edited (code: string, edits: readonly Edit[]): string {
  let [text, at] = ['', 0]
  for (const [start, end, added] of edits.toSorted(([a, aEnd], [b, bEnd]) => a - b || aEnd - bEnd)) {
    text += code.slice(at, start) + added
    at = end
  }
  return text + code.slice(at)
}
