// kafkajs leaves the codec to its application. This one compresses nothing: a frame of one raw block.
const { CompressionCodecs, CompressionTypes } = require('kafkajs')

const HEAD_BYTES = 12

function framed (data) {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32LE(0xFD2FB528, 0)
  head.writeUInt8(0xA0, 4) // a single segment, with its size in four bytes
  head.writeUInt32LE(data.length, 5)
  head.writeUIntLE(data.length << 3 | 1, 9, 3) // the last block, which is raw
  return Buffer.concat([head, data])
}

CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: async encoder => framed(encoder.buffer),
  decompress: async buffer => buffer.subarray(HEAD_BYTES)
})
