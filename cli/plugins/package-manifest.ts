import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { z } from 'zod'
import { pluginKinds } from '../../kernel/contract/plugin/context.js'
import { API_VERSION } from '../../kernel/contract/plugin/plugin.js'
import { gatewayMisfit, HOST_PACKAGE, jsonProblem, keyPlace } from '../offline/gateway-fit.js'
import { version as gatewayVersion } from '../../kernel/version.js'

const packageSchema = z.looseObject({ name: z.string(), version: z.string().default('0.0.0'), svc: z.unknown().optional() })
const svcSchema = z.looseObject({
  apiVersion: z.number(), kind: z.union([z.enum(pluginKinds), z.array(z.enum(pluginKinds)).min(1)])
})

/** What a package says about itself. */
export interface PackageManifest {
  readonly name: string
  readonly version: string
  /** Null when it is no plugin for this gateway; `problem` says why. */
  readonly kind: string | null
  readonly problem: string | null
}

/** Null when there is no package in the folder. */
export async function readPackageManifest (folder: string): Promise<PackageManifest | null> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => null)
  if (text === null) return null
  const broken = jsonProblem(text)
  const unnamed = { name: basename(folder), version: '0.0.0', kind: null }
  if (broken !== null) return { ...unnamed, problem: `cannot be read: ${broken}` }
  const json: unknown = JSON.parse(text)
  const parsed = packageSchema.safeParse(json)
  if (!parsed.success) return { ...unnamed, problem: 'has no package.json with a name' }
  const { name, version, svc } = parsed.data
  const { kind, problem } = judge(svc)
  const misfit = gatewayMisfit(json, gatewayVersion)
  const place = keyPlace(text, problem === null ? HOST_PACKAGE : 'svc')
  const worst = problem ?? misfit
  return { name, version, kind, problem: worst === null || !place.includes(':') ? worst : `${worst} (${place})` }
}

function judge (svc: unknown): Pick<PackageManifest, 'kind' | 'problem'> {
  if (svc === undefined) return { kind: null, problem: 'is not a plugin: its package.json has no "svc" field' }
  const parsed = svcSchema.safeParse(svc)
  if (!parsed.success) {
    const example = `{ "apiVersion": ${API_VERSION}, "kind": "provider" }`
    return { kind: null, problem: `is not a plugin: the "svc" field of its package.json must look like ${example}, kind one of ${pluginKinds.join(', ')}` }
  }
  const { apiVersion, kind } = parsed.data
  if (apiVersion === API_VERSION) return { kind: [...new Set([kind].flat())].sort().join(', '), problem: null }
  return { kind: null, problem: `was written for version ${apiVersion} of the plugin contract; this gateway has version ${API_VERSION}; take a version of the package that is made for it` }
}
