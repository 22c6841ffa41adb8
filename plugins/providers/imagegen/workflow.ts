import { createRequire } from 'node:module'
import { z } from 'zod'
import { imageError } from './errors.js'

const pointer = z.string().regex(/^(\/[^/]+)+$/, { error: 'must be a JSON pointer such as /sampler/inputs/seed' })
/** Where a parameter goes; several where more than one node takes it. */
const places = z.union([pointer, z.array(pointer).min(1)])
const bounds = z.strictObject({ min: z.number(), max: z.number() })

const nodeSchema = z.looseObject({ class_type: z.string().min(1), inputs: z.record(z.string(), z.unknown()) })

const metaSchema = z.strictObject({
  title: z.string(),
  defaults: z.strictObject({ steps: z.int().min(1), cfg: z.number() }),
  limits: z.strictObject({ steps: bounds, cfg: bounds }),
  /** Where in the graph each parameter goes. A workflow without a pointer cannot be given that parameter. */
  params: z.strictObject({
    ckpt_name: places,
    positive_prompt: places,
    negative_prompt: places.optional(),
    image: places.optional(),
    mask: places.optional(),
    width: places,
    height: places,
    batch_size: places,
    seed: places,
    steps: places,
    cfg: places,
    denoise: places.optional(),
    filename_prefix: places
  })
})

const workflowSchema = z.object({ _meta: metaSchema }).catchall(nodeSchema)

/** What a graph is filled in with. */
export interface GraphParams {
  readonly ckpt_name: string
  readonly positive_prompt: string
  readonly negative_prompt: string
  /** Names of pictures in the engine's folder for them. */
  readonly image?: string
  readonly mask?: string
  readonly width: number
  readonly height: number
  readonly batch_size: number
  readonly seed: number
  readonly steps: number
  readonly cfg: number
  /** Of a picture that is there: how much of it is new. */
  readonly denoise?: number
  readonly filename_prefix: string
}

/** As the engine takes it: node id to node. */
export type Graph = Readonly<Record<string, z.output<typeof nodeSchema>>>

export interface Workflow {
  readonly name: string
  readonly meta: z.output<typeof metaSchema>
  readonly graph: Graph
}

/** Workflows that ship with the plugin, by name: JSON files beside this one. */
export const workflowNames = ['sdxl_turbo_simple', 'sd15_simple'] as const
/** Those that start from a picture, which has to be with the engine first: nothing that can be launched as it is. */
export const editWorkflowNames = ['sdxl_turbo_image', 'sdxl_turbo_inpaint', 'sd15_image', 'sd15_inpaint'] as const

const load = createRequire(import.meta.url)

export function shippedWorkflow (name: string): Workflow {
  if (![...workflowNames, ...editWorkflowNames].some(shipped => shipped === name)) {
    throw imageError('image.workflow_not_found', `there is no workflow '${name}'; there are ${workflowNames.join(', ')}`, { details: { workflow: name } })
  }
  return parseWorkflow(name, load(`./workflows/${name}.json`))
}

/** Checks a workflow file: its shape, and that every pointer leads to an input of a node. Throws `image.workflow_invalid`. */
export function parseWorkflow (name: string, json: unknown): Workflow {
  const parsed = workflowSchema.safeParse(json)
  if (!parsed.success) throw invalid(name, z.prettifyError(parsed.error))
  const { _meta: meta, ...graph } = parsed.data
  for (const [param, paths] of Object.entries(meta.params)) {
    for (const path of [paths].flat()) {
      if (path !== undefined && target(graph as Graph, path) === null) throw invalid(name, `${param} points at ${path}, which does not exist`)
    }
  }
  return { name, meta, graph: graph as Graph }
}

/** The graph with its parameters filled in. Pure; the workflow stays as it is. */
export function fillGraph (workflow: Workflow, params: GraphParams): Graph {
  return withParams(workflow, params)
}

/** The same with some of them; the others stay as the file has them. Pure. */
export function withParams ({ meta, graph }: Workflow, params: Partial<GraphParams>): Graph {
  const filled = structuredClone(graph)
  for (const [param, paths] of Object.entries(meta.params)) {
    if (!Object.hasOwn(params, param)) continue
    for (const path of [paths].flat()) {
      const place = path === undefined ? null : target(filled, path)
      if (place !== null) place.inputs[place.key] = params[param as keyof GraphParams]
    }
  }
  return filled
}

function target (graph: Graph, path: string): { readonly inputs: Record<string, unknown>, readonly key: string } | null {
  const [node = '', inputs, key = '', ...more] = path.slice(1).split('/').map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  const found = Object.hasOwn(graph, node) ? graph[node]! : null
  if (found === null || inputs !== 'inputs' || more.length > 0 || !Object.hasOwn(found.inputs, key)) return null
  return { inputs: found.inputs, key }
}

function invalid (name: string, reason: string): Error {
  return imageError('image.workflow_invalid', `workflow '${name}' cannot be used: ${reason}`, { details: { workflow: name } })
}
