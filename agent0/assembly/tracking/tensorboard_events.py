"""Part of the rim: a TensorBoard event file, written as its format says; no package is needed.

Source of the format: TFRecord (https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details) around
messages of tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

from agent0.assembly.tracking.measured import Point, RunSeries

_POLYNOMIAL = 0x82F63B78
"""CRC-32C (Castagnoli), reflected."""


def write_events(run_measures: RunSeries, folder: Path) -> Path:
    """Write ``folder``/RUN/events.out.tfevents.*, which `tensorboard --logdir` reads; an earlier one is replaced.

    Raises:
        OSError: it cannot be written.
    """
    run_folder = folder / run_measures.run
    run_folder.mkdir(parents=True, exist_ok=True)
    began = int(run_measures.points[0].time) if run_measures.points else 0
    file = run_folder / f"events.out.tfevents.{began:010}.agent0"
    file.write_bytes(b"".join(map(_record, _messages(run_measures))))
    return file


def _messages(run_measures: RunSeries) -> Iterator[bytes]:
    began = run_measures.points[0].time if run_measures.points else 0.0
    yield _double(1, began) + _bytes(3, b"brain.Event:2")
    for point in (*run_measures.points, *run_measures.trainings):
        yield _event(point)


def _event(point: Point) -> bytes:
    value = _bytes(1, point.series.encode()) + _key(2, 5) + struct.pack("<f", point.value)
    return _double(1, point.time) + _key(2, 0) + _varint(point.step) + _bytes(5, _bytes(1, value))


def _record(message: bytes) -> bytes:
    size = struct.pack("<Q", len(message))
    return size + struct.pack("<I", masked_crc(size)) + message + struct.pack("<I", masked_crc(message))


def _key(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _double(field: int, value: float) -> bytes:
    return _key(field, 1) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def masked_crc(data: bytes) -> int:
    """The CRC-32C of ``data``, rotated and offset as TFRecord stores it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
