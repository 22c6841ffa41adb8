import { readdirSync, readFileSync, statSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'
import type { ConfigDraft } from '../../../kernel/contract/index.js'
import type { FileOps } from '../../../kernel/config/files/atomic-file.js'
import { capabilityChoices } from '../../../plugins/services/capabilities/ref.js'

/** A home in which every kind of file is there before. */
export const before: Readonly<Record<string, string>> = {
  'slots/agent.toml': '# mine\nport = 8081 # fixed\ndevice = "cpu"\n',
  'slots/gone.toml': 'port = 8083\n',
  'private.json': 'damaged',
  'words.toml': '# a plugin\'s own\nwords = ["one"]\n',
  'profiles.toml': '# my own\n[profile.mine]\nimage = "x" # what else\n',
  'capabilities.toml': 'schema_version = 1\n[selections.voice.tts]\nbackend = "cpu"\nenabled = true\n'
}

/** Creates, patches and deletes: slots, catalogues, the overlay, a plugin's file and a file of the state root. */
export async function reshape (draft: ConfigDraft): Promise<void> {
  await draft.patchSlot('agent', { device: 'gpu-vulkan', idle_timeout_s: 60 })
  await draft.createSlot('coder', { port: 8084, model: { default: 'qwen' } })
  await draft.deleteSlot('gone')
  await draft.putProfile('mine', { ...draft.profiles.get('mine')!, flags: '-fa on' })
  await capabilityChoices.put(draft, 'embed', { device: 'cpu', provider: null, model: 'nomic', enabled: true })
  await draft.patchFile('words.toml', { words: ['one', 'two'] })
  await draft.putState('stacks.json', '{"active":"saber"}\n')
  await draft.putPrivate('private.json', '{"token":"x"}\n')
}

/** Every file below both roots but those of locks, by path; temporary files show too. */
export function tree (home: string): Record<string, string> {
  const found: Record<string, string> = {}
  const visit = (folder: string): void => {
    for (const name of readdirSync(join(home, folder)).sort()) {
      const path = `${folder}/${name}`
      if (statSync(join(home, path)).isDirectory()) visit(path)
      else if (!name.includes('.lock') && name !== 'gateway.alive') found[path] = readFileSync(join(home, path), 'utf8')
    }
  }
  visit('etc')
  visit('var')
  return found
}

type Name = Exclude<keyof FileOps, never>
const names: readonly Name[] = ['mkdir', 'open', 'realpath', 'rename', 'link', 'unlink', 'stat']

/** File operations that ask before each of them, counting from 0. */
export function watchedOps (beforeEach: (index: number, name: Name, path: string) => Promise<void> | void): FileOps {
  let index = 0
  const wrapped = names.map(name => [name, async (...args: unknown[]) => {
    await beforeEach(index++, name, String(args[0]))
    return await (fs[name] as (...args: unknown[]) => Promise<unknown>)(...args)
  }])
  return Object.fromEntries(wrapped) as FileOps
}
