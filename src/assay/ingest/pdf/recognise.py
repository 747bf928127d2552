"""Reads the words on a picture of a page with RapidOCR, whose models are in its wheel. Runs in a parser process.

Imported only when a page is to be read. openvino, which runs Assay's own models, runs these too, without its converter.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np

from assay.models.local.openvino_runner import load_openvino

# Before rapidocr imports it whole; and it looks at the processor now, since a parser may not read about it later.
load_openvino().Core().get_property("CPU", "FULL_DEVICE_NAME")

import cv2  # noqa: E402
from rapidocr import RapidOCR  # noqa: E402
from rapidocr.ch_ppocr_cls import TextClsOutput  # noqa: E402
from rapidocr.main import RapidOCRError  # noqa: E402
from rapidocr.utils.typings import EngineType  # noqa: E402

from assay.core.printable import clean_text  # noqa: E402
from assay.ingest.scan import SeenPage, SeenWord, turned_back  # noqa: E402

LONGEST_SIDE = 2000  # pixels that the detector looks at
LEAST_SURE = 0.5  # of a line: below it, the result is noise
TALL = 1.5  # times as high as wide: a line that runs up or down the page
INK = 0.75  # of the height of a box that the detector draws around a line
MOST_THREADS = 4
MOST_ASKED = 24  # lines


@cache
def _engine() -> RapidOCR:
    cv2.setNumThreads(1)
    threads = min(MOST_THREADS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
    options: dict[str, Any] = {f"{part}.engine_type": EngineType.OPENVINO for part in ("Det", "Cls", "Rec")}
    options |= {
        "EngineConfig.openvino.inference_num_threads": threads,
        "EngineConfig.openvino.num_streams": 1,
        "EngineConfig.openvino.enable_cpu_pinning": False,
        "Rec.rec_batch_num": 1,  # nothing is padded to the length of another line
        "Global.text_score": LEAST_SURE,
        "Global.max_side_len": LONGEST_SIDE,
        "Global.return_word_box": True,
        "Global.log_level": "critical",
    }
    return RapidOCR(params=options)


def recognise(picture: np.ndarray, page: int, width: float, height: float) -> SeenPage:
    """The words on an RGB picture of a page of this size in points. A page that lies on its side or its head is turned."""
    engine, turns = _engine(), 0
    upright = np.ascontiguousarray(picture[:, :, ::-1])
    try:
        crops, lines, record = _detected(engine, upright)
        if _tall(lines.boxes):
            turns, upright = 1, np.ascontiguousarray(np.rot90(upright))
            crops, lines, record = _detected(engine, upright)
        if _on_its_head(engine, crops):
            turns, upright = turns + 2, np.ascontiguousarray(np.rot90(upright, 2))
            crops, lines, record = _detected(engine, upright)
        read = engine.recognize_txt(crops)
    except RapidOCRError:  # there is nothing that looks like a line
        return SeenPage(page, width, height)
    found = engine.build_final_output(upright, lines, TextClsOutput(), read, crops, record)
    down, across = upright.shape[:2]
    wide, high = (height, width) if turns % 2 else (width, height)
    words: list[SeenWord] = []
    read_words: Any = getattr(found, "word_results", None) or ()
    for number, line in enumerate(read_words):
        for text, sure, corners in line:
            text = clean_text(text).strip()
            edges = np.array(corners, dtype=np.float64) / (across, down)
            (x0, y0), (x1, y1) = edges.min(axis=0).tolist(), edges.max(axis=0).tolist()
            off = (1 - INK) / 2 * (y1 - y0)
            y0, y1 = y0 + off, y1 - off
            if text and x1 > x0 and y1 > y0:
                shown = turned_back((x0, y0, x1, y1), turns)
                words.append(SeenWord(text, number, x0 * wide, y0 * high, x1 * wide, y1 * high, shown, float(sure)))
    return SeenPage(page, wide, high, tuple(words), turns)


def _detected(engine: RapidOCR, picture: np.ndarray) -> tuple[list[np.ndarray], Any, dict[str, Any]]:
    shrunk, record = engine.preprocess_img(picture)
    return *engine.detect_and_crop(shrunk, record), record


def _tall(boxes: np.ndarray) -> bool:
    """Whether most of what is written runs up or down the page."""
    across = np.linalg.norm(boxes[:, 0] - boxes[:, 1], axis=1)
    down = np.linalg.norm(boxes[:, 0] - boxes[:, 3], axis=1)
    tall = down > TALL * across
    return bool(down[tall].sum() > across[~tall].sum())


def _on_its_head(engine: RapidOCR, crops: list[np.ndarray]) -> bool:
    """Whether most lines are upside down, by the classifier of lines, which turns those it finds so."""
    wide = [crop for crop in crops if crop.shape[1] > TALL * crop.shape[0]][:MOST_ASKED]
    turned = engine.cls_and_rotate([*wide])[1].cls_res or () if wide else ()
    return 2 * sum(label == "180" for label, _ in turned) > len(wide) > 0
