import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { shellText } from 'svc-gateway/plugin'
import { z } from 'zod'
import type { ClusterAccess } from '../api/kubeconfig.js'
import { INSTANCE_LABEL, instanceValue } from '../pod/pod-names.js'

const placeSchema = z.strictObject({
  connect: z.enum(['kubeconfig', 'in-cluster']),
  kubeconfig: z.string(),
  context: z.string(),
  server: z.string(),
  namespace: z.string(),
  /** Value of the label that pods of this home have. */
  instance: z.string()
})
const fileSchema = z.strictObject({ version: z.literal(1), places: z.array(placeSchema) })

/** A namespace of a cluster where pods of this home are, or may be, and how it was reached. */
export type PodPlace = z.output<typeof placeSchema>

const FILE = 'pod-places.json'
/** The oldest are forgotten. */
const MOST_PLACES = 32

/** The one in use first. None where the file is not there or cannot be read. */
export async function readPlaces (folder: string): Promise<readonly PodPlace[]> {
  try {
    return fileSchema.parse(JSON.parse(await readFile(join(folder, FILE), 'utf8'))).places
  } catch {
    return []
  }
}

export async function writePlaces (folder: string, places: readonly PodPlace[]): Promise<void> {
  const kept = { version: 1, places: places.slice(0, MOST_PLACES) }
  const path = join(folder, FILE)
  await writeFile(`${path}.new`, `${JSON.stringify(kept, null, 2)}\n`, { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
}

/** Where pods of this home go. Pure. */
export function placeOf ({ way, server, namespace }: ClusterAccess, kubeconfig: string, instance: string): PodPlace {
  return { ...way, kubeconfig, server, namespace, instance: instanceValue(instance) }
}

export function isSamePlace (a: Pick<PodPlace, 'server' | 'namespace'>, b: Pick<PodPlace, 'server' | 'namespace'>): boolean {
  return a.server === b.server && a.namespace === b.namespace
}

/** For people: what may be left there, and what removes it. Pure. */
export function placeLine ({ kubeconfig, context, server, namespace, instance }: PodPlace): string {
  const options = [...kubeconfig === '' ? [] : ['--kubeconfig', kubeconfig], ...context === '' ? [] : ['--context', context]]
  const command = shellText(['kubectl', ...options, '-n', namespace, 'delete', 'pods', '-l', `${INSTANCE_LABEL}=${instance}`])
  return `pods of this home may be left in namespace '${namespace}' of ${server}; each start of the gateway checks again, and \`${command}\` removes them`
}
