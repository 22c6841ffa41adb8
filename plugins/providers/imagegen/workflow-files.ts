import { randomInt } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { comfyuiError, imageError } from './errors.js'
import type { WorkflowEntry } from './ref.js'
import { parseWorkflow, shippedWorkflow, withParams, workflowNames, type Graph } from './workflow.js'

/** Below the engine's data folder: ours, and where the engine's own page saves. */
const folders = ['workflows', 'user/default/workflows'] as const
/** With its ending it is the name of a file, which no file system wants longer. */
const NAME = /^[A-Za-z0-9._-]{1,200}$/
const MAX_BYTES = 8 * 1024 * 1024
/** Whole numbers that `randomInt` gives. */
const SEEDS = 2 ** 48 - 1

const nodeSchema = z.looseObject({ class_type: z.string().min(1), inputs: z.record(z.string(), z.unknown()) })
const graphSchema = z.record(z.string(), nodeSchema)
  .refine(graph => Object.keys(graph).length > 0, { error: 'it has no nodes' })

/** Workflows by name: those that ship, and JSON files in the data folder of the engine. */
export async function listWorkflows (dataRoot: string): Promise<readonly WorkflowEntry[]> {
  const found = await Promise.all(folders.map(folder => readdir(join(dataRoot, folder)).catch(() => [])))
  const names = found.flat().filter(file => file.endsWith('.json')).map(file => file.slice(0, -'.json'.length))
  const user = [...new Set(names)].filter(name => isName(name) && !isShipped(name)).sort()
  return [
    ...workflowNames.map(name => ({ name, source: 'primary' as const })),
    ...user.map(name => ({ name, source: 'user' as const }))
  ]
}

/**
 * The graph of a workflow as it can be queued. Parameters stay as the file has them, but for the seed of a file that says
 * where it goes: the engine does not run again what it has just run.
 */
export async function readGraph (dataRoot: string, name: string): Promise<Graph> {
  if (!isName(name)) throw notFound(name)
  if (isShipped(name)) return seeded(shippedWorkflow(name))
  const json = await readJson(dataRoot, name)
  if (typeof json === 'object' && json !== null && Object.hasOwn(json, '_meta')) return seeded(parseWorkflow(name, json))
  const graph = graphSchema.safeParse(json)
  if (graph.success) return graph.data
  throw imageError('image.workflow_invalid',
    `workflow '${name}' is not in the API format: export it on the engine's page with "Export (API)"; ${z.prettifyError(graph.error).split('\n')[0]!}`,
    { details: { workflow: name } })
}

function seeded (workflow: ReturnType<typeof shippedWorkflow>): Graph {
  return withParams(workflow, { seed: randomInt(SEEDS) })
}

async function readJson (dataRoot: string, name: string): Promise<unknown> {
  for (const folder of folders) {
    const path = join(dataRoot, folder, `${name}.json`)
    try {
      if ((await stat(path)).size > MAX_BYTES) throw new RangeError(`it is larger than ${MAX_BYTES / 1024 / 1024} MiB`)
      return JSON.parse(await readFile(path, 'utf8')) as unknown
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') continue
      // what the system says has the path of the file in it, which is not shown
      throw comfyuiError('comfyui.workflow_read_error', `the file of workflow '${name}' cannot be read: ${code ?? message}`,
        { details: { workflow: name }, cause: error })
    }
  }
  throw notFound(name)
}

function isName (name: string): boolean {
  return NAME.test(name) && !name.includes('..')
}

function isShipped (name: string): boolean {
  return (workflowNames as readonly string[]).includes(name)
}

function notFound (name: string): Error {
  return comfyuiError('comfyui.workflow_not_found', 'no such workflow; GET /api/comfyui/workflows lists all workflows', { details: { workflow: name } })
}
