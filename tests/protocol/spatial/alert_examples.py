"""Alerts as agencies write them: CAP 1.2, Atom and RSS with places, of nobody."""

CAP = """<?xml version="1.0" encoding="UTF-8"?>
<alert xmlns="urn:oasis:names:tc:emergency:cap:1.2">
  <identifier>2.49.0.1.246.0.2026.11.27</identifier><sender>varoitukset@example.fi</sender>
  <sent>2026-11-27T09:00:00+02:00</sent>
  <status>{status}</status><msgType>{kind}</msgType><scope>Public</scope>
  <info><language>fi-FI</language><category>Met</category><event>Myrskyvaroitus</event>
    <urgency>Expected</urgency><severity>Severe</severity><certainty>Likely</certainty>
    <expires>2026-11-27T21:00:00+02:00</expires>
    <headline>Kova tuuli &amp; aallokko</headline><description>Puuskia 30 m/s.</description>
    <area><areaDesc>Uusimaa</areaDesc>
      <polygon>60.0,24.0 61.0,24.0 61.0,26.0 60.0,26.0 60.0,24.0</polygon></area></info>
  <info><language>en-GB</language><event>Storm warning</event>
    <area><areaDesc>Uusimaa</areaDesc><circle>60.17,24.94 30</circle></area></info>
  <info><language>sv-FI</language><event>Stormvarning</event>
    <area><areaDesc>Nyland</areaDesc>
      <geocode><valueName>EMMA_ID</valueName><value>FI001</value></geocode></area>
  </info>
</alert>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xmlns:georss="http://www.georss.org/georss"
  xmlns:gml="http://www.opengis.net/gml"><title>Earthquakes</title>
  <entry><id>urn:quake:1</id><title>M 4.6 - near Fiji</title>
    <summary type="html"><![CDATA[Depth 10 km]]></summary>
    <georss:point>-17.5 179.9</georss:point></entry>
  <entry><id>urn:quake:2</id><title>M 7.1</title>
    <georss:where><gml:Polygon><gml:exterior><gml:LinearRing><gml:posList>
      10 179 10 -179 12 -179 12 179 10 179</gml:posList></gml:LinearRing></gml:exterior></gml:Polygon>
    </georss:where>
  </entry>
  <entry><id>urn:quake:3</id><title>nowhere</title></entry>
  <entry><id>urn:quake:4</id><title>beyond</title><georss:point>91 0</georss:point></entry>
</feed>"""
RSS = """<rss version="2.0" xmlns:geo="http://www.w3.org/2003/01/geo/wgs84_pos#"
  xmlns:georss="http://www.georss.org/georss"><channel><title>Floods</title>
  <item><title>Flood in Kerala</title><description>Rivers rise.</description><guid>{guid}</guid>
    <geo:Point><geo:lat>10.5</geo:lat><geo:long>76.2</geo:long></geo:Point></item>
  <item><title>Fire</title><link>https://example.org/2</link><georss:box>1 2 3 4</georss:box></item>
</channel></rss>"""


def documents() -> list[bytes]:
    """Each of them, whole."""
    texts = (CAP.format(status="Actual", kind="Alert"), ATOM, RSS.format(guid="1"))
    return [one.encode() for one in texts]
