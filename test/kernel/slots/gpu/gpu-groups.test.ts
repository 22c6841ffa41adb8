import t from 'tap'
import { gpuInfoSchema, slotConfigSchema, type Device, type SlotConfigInput } from '../../../../kernel/contract/index.js'
import { enabledImageSlots, gpuGroups, idleRestoreMinutes, sideOf, type PlacedSlot } from '../../../../kernel/slots/gpu/gpu-groups.js'

function place (name: string, device: Device, config: SlotConfigInput = {}): PlacedSlot {
  return { slot: { ...slotConfigSchema.parse(config), name, provider: 'fake' }, device }
}

const image = { type: 'image' } as const

t.test('who shares a GPU with an image slot', async t => {
  const names = (placed: readonly PlacedSlot[]): object => {
    const groups = gpuGroups(placed, [])
    return { img: groups.img.map(slot => slot.name), llm: groups.llm.map(slot => slot.name) }
  }
  t.strictSame(names([place('chat', 'gpu-rocm'), place('embed', 'gpu-vulkan', { type: 'embedding' })]), { img: [], llm: [] }, 'without one, nobody')
  t.strictSame(names([
    place('img', 'gpu-rocm', image), place('chat', 'gpu-rocm'), place('embed', 'gpu-vulkan', { type: 'embedding' }), place('say', 'gpu-rocm', { type: 'tts' }),
    place('small', 'cpu'), place('npu', 'npu')
  ]), { img: ['img'], llm: ['chat', 'embed', 'say'] }, 'all that run on a GPU; CPU and NPU go on')
  t.strictSame(names([place('img', 'cpu', image), place('chat', 'gpu-rocm')]), { img: [], llm: [] }, 'an image slot on the CPU takes nothing away')
  t.strictSame(names([place('img', 'gpu-rocm', image), place('chat', 'gpu-cuda'), place('any', 'gpu-vulkan')]), { img: ['img'], llm: ['any'] },
    'AMD and NVIDIA are two GPUs')
  t.strictSame(names([
    place('img', 'gpu-rocm', { ...image, gpu_index: 1 }), place('first', 'gpu-rocm', { gpu_index: 0 }), place('second', 'gpu-vulkan', { gpu_index: 1 }),
    place('all', 'gpu-rocm')
  ]), { img: ['img'], llm: ['second', 'all'] }, 'pinned to different GPUs they never meet')
  t.strictSame(names([place('one', 'gpu-rocm', image), place('two', 'gpu-rocm', { ...image, default: true })]), { img: ['two', 'one'], llm: [] }, 'the default first')
})

t.test('slots belong to a side of the GPU, and the longest idle time counts', async t => {
  const groups = gpuGroups([
    place('img', 'gpu-rocm', image), place('more', 'gpu-rocm', { ...image, image: { idle_restore_minutes: 90 } }),
    place('off', 'gpu-rocm', { ...image, enabled: false, image: { idle_restore_minutes: 0 } }), place('chat', 'gpu-rocm'), place('small', 'cpu')
  ], [])
  t.strictSame(['img', 'off', 'chat', 'small', 'nobody'].map(name => sideOf(groups, name)), ['img', 'img', 'llm', null, null])
  t.strictSame(enabledImageSlots(groups).map(slot => slot.name), ['img', 'more'])
  t.equal(idleRestoreMinutes(groups), 90, 'the longest; 60 is the default')
  t.equal(idleRestoreMinutes(gpuGroups([place('a', 'gpu-rocm', image), place('b', 'gpu-rocm', { ...image, image: { idle_restore_minutes: 0 } })], [])), 0, 'never decides')
  t.equal(idleRestoreMinutes(gpuGroups([], [])), 0)
})

t.test('numbers are those of each device, so that an AMD and an NVIDIA GPU of one number are two', async t => {
  const gpus = [{ vendor: 'intel' }, { vendor: 'nvidia' }, { vendor: 'amd' }].map(gpu => gpuInfoSchema.parse(gpu))
  const besides = (img: PlacedSlot, other: PlacedSlot): boolean => gpuGroups([img, other], gpus).llm.length > 0
  const onAmd = place('img', 'gpu-rocm', { ...image, gpu_index: 0 })
  t.equal(besides(onAmd, place('chat', 'gpu-cuda', { gpu_index: 0 })), false)
  t.equal(besides(onAmd, place('chat', 'gpu-vulkan', { gpu_index: 0 })), false, 'Vulkan counts all: its first is Intel\'s')
  t.equal(besides(onAmd, place('chat', 'gpu-vulkan', { gpu_index: 2 })), true)
  t.equal(besides(onAmd, place('chat', 'gpu-vulkan')), true)
})
