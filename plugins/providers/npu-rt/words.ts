export const words = { name: 'npu-rt', isNamed: true }
